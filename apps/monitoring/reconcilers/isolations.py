"""Controller of isolations: run burn-ins, and taint isolated nodes on their clusters.

Each step contacts a cluster, which may take its time: this controller waits for it, so that the one that decides
about faults does not.

::

    EMPTY ── settled, or requested by a user ─▶ TESTING ── launch, observe ─▶ proved (released by a decision)
      ▲                                          │
      └──────────── failed ──────────────────────┘

A run that dies between any two lines is repeated: the name of the Launch derives from the row, and launching and
removing are idempotent.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from functools import partial
from itertools import islice

from django.db import transaction
from django.db.models import Q, QuerySet

from apps.fleet import selectors as fleet
from apps.fleet.models import Card, Node
from apps.fleet.services.card_availability import node_isolation_taint_record
from apps.monitoring.models import Isolation
from apps.monitoring.selectors.health_snapshots import health_policy, health_snapshot
from apps.monitoring.services import burn_ins as moves
from apps.monitoring.services import burn_ins as runs
from apps.monitoring.services.isolations import cards_isolated_with
from controlplane.domain.common.reasons import Reason
from controlplane.domain.common.state_machine import IllegalTransition
from controlplane.domain.health.isolations import (
    IsolationState,
    burn_in_invalidation_reason,
    release_blocker_reason,
)
from controlplane.domain.health.recommended_actions import FaultSeverities
from controlplane.domain.health.snapshots import (
    DecisionPolicy,
    FaultView,
    HealthSnapshot,
    IsolationView,
)
from controlplane.persistence.leases import LeaderLease, hold_leader_lease
from controlplane.ports.adapter_registry import AdapterNotFound
from controlplane.ports.clusters import (
    ClusterAdapter,
    ClusterError,
    ClusterUnavailable,
    LaunchRefused,
    TaintableCluster,
)

log = logging.getLogger(__name__)

LEASE = "monitoring.isolations"
#: Longer than one step with a cluster that does not respond; the lease is renewed before each step.
LEASE_TTL = timedelta(minutes=3)
#: An existing taint is checked again after a while, in case it was removed by hand; a missing one sooner.
_AGAIN, _SOON = timedelta(minutes=10), timedelta(seconds=30)
#: Row → when this process checks its taint again.
_asked: dict[int, datetime] = {}


class _IsolationLeaseLost(Exception):
    """Another run has the lease."""


def isolations_reconcile(*, at: datetime) -> int:
    """Advance each isolation by one step, unless another process does; return their number. Failures are
    isolated.
    """
    unfinished = Q(ended_at=None) | Q(evidence__has_key=moves.LAUNCH)
    rows = Isolation.objects.filter(unfinished, node__removed_at=None)
    with hold_leader_lease(LEASE, ttl=LEASE_TTL) as lease:
        if lease is None:
            return 0
        if not (count := rows.count() + _nodes_tainted_after_isolation().count()):
            _asked.clear()
            return 0
        policy = health_policy().policy
        with transaction.atomic():
            snapshot = health_snapshot(policy=policy, at=at)
        hold = partial(_renew_lease, lease)
        try:
            burn_ins_reconcile(snapshot=snapshot, policy=policy, at=at, hold=hold)
            isolation_taints_reconcile(at=at, hold=hold)
        except _IsolationLeaseLost:
            log.warning("a turn lost its lease; another goes on", extra={"lease": LEASE})
    return count


def _renew_lease(lease: LeaderLease) -> None:
    """:raises _IsolationLeaseLost: if another run has the lease."""
    if not lease.renew(ttl=LEASE_TTL):
        raise _IsolationLeaseLost


def isolation_taints_reconcile(*, at: datetime, hold: Callable[[], None] = lambda: None) -> int:
    """Taint isolated nodes on their clusters, and remove other taints of ours; return the number of changes.

    Level-triggered: a failed change is retried.

    :param hold: called before each node; its exceptions end the run.
    """
    whole = Isolation.objects.filter(card=None, node__removed_at=None, ended_at=None)
    changed = 0
    # Clusters that did not respond: not contacted again in this run.
    away: set[int] = set()
    standing = list(whole.select_related("node__cluster"))
    # Also those that ended before they bore a mark: nothing else comes by to forget them.
    for over in _asked.keys() - {row.pk for row in standing}:
        del _asked[over]
    for row in standing:
        if _asked.get(row.pk, at) <= at:
            marked = _taint_node(row.node, row.reason, away, hold)
            _asked[row.pk] = at + (_AGAIN if marked else _SOON)
            changed += marked
    for node in _nodes_tainted_after_isolation().select_related("cluster"):
        changed += _remove_taint(node, away, hold)
    return changed


def _nodes_tainted_after_isolation() -> QuerySet[Node]:
    return Node.objects.filter(tainted=True, isolated_since=None)


def _taint_node(node: Node, reason: str, away: set[int], hold: Callable[[], None]) -> bool:
    """Taint the node, unless it was returned to service meanwhile: nothing would remove that taint."""
    adapter = None if node.cluster_id in away else _taintable_cluster(node)
    if adapter is None:
        return False
    hold()
    # Recorded first: a taint without a record would never be removed.
    if not node_isolation_taint_record(node=node.pk, tainted=True):
        return False
    try:
        return adapter.taint_node(node.name, reason)
    except ClusterError as error:
        _record_unreachable_cluster(node, error, away)
        return False


def _remove_taint(node: Node, away: set[int], hold: Callable[[], None]) -> bool:
    """Remove the taint, unless the node was isolated again meanwhile: then it needs the taint."""
    if node.cluster_id in away:
        return False
    hold()
    if not _nodes_tainted_after_isolation().filter(pk=node.pk).exists():
        return False
    adapter = _taintable_cluster(node)
    try:
        if adapter is not None:
            adapter.untaint_node(node.name)
    except ClusterError as error:
        _record_unreachable_cluster(node, error, away)
        return False
    return node_isolation_taint_record(node=node.pk, tainted=False)


def _taintable_cluster(node: Node) -> TaintableCluster | None:
    try:
        adapter = fleet.cluster_adapter(node.cluster)
    except (ClusterError, AdapterNotFound) as error:
        _record_unreachable_cluster(node, error)
        return None
    return adapter if isinstance(adapter, TaintableCluster) else None


def _record_unreachable_cluster(node: Node, error: Exception, away: set[int] | None = None) -> None:
    if away is not None and isinstance(error, ClusterUnavailable):
        away.add(node.cluster_id)
    details = {"node": str(node), "error": str(error)}
    log.warning("a node's taint could not be kept", extra=details)


#: Burn-in runs handled in one run: each may wait for its cluster.
BATCH = 16

Turn = Callable[[Isolation, datetime], None]


def burn_ins_reconcile(
    *, snapshot: HealthSnapshot, policy: DecisionPolicy, at: datetime, hold: Callable[[], None]
) -> None:
    """Start due burn-in runs, observe the running ones, and remove the launches of ended ones.

    :param hold: called before each step; its exceptions end the run.
    """
    rows = Isolation.objects.select_related("node__cluster", "card").order_by("pk")
    # A removed cluster cannot be contacted.
    rows = rows.filter(node__removed_at=None)
    standing = rows.filter(ended_at=None)
    severities = FaultSeverities(snapshot.faults, snapshot.released, policy, at)
    by_node: dict[str, list[FaultView]] = defaultdict(list)
    for fault in snapshot.faults:
        by_node[fault.node].append(fault)
    settled = [
        row
        for row in _isolations_due_for_burn_in(standing)
        if _may_start_burn_in(row, by_node[row.node.uid], severities, policy, at)
    ]
    proved = standing.filter(state=IsolationState.TESTING, proved_at__isnull=False, actor_name="")
    for row in proved:
        if reason := burn_in_invalidation_reason(
            by_node[row.node.uid], isolation=_isolation_view_of_row(row), severities=severities
        ):
            _record_failed_burn_in(row, reason, at)
    # Clusters that did not respond: not contacted again in this run.
    away: set[int] = set()
    _reconcile_each_burn_in(settled, _begin_burn_in, away, at, hold)
    testing = standing.filter(state=IsolationState.TESTING, proved_at=None)
    _reconcile_each_burn_in(testing, _observe_burn_in, away, at, hold)
    over = ~Q(state=IsolationState.TESTING) | Q(proved_at__isnull=False)
    _reconcile_each_burn_in(
        rows.filter(over, evidence__has_key=moves.LAUNCH), _remove_burn_in, away, at, hold
    )


def _reconcile_each_burn_in(
    rows: Iterable[Isolation],
    turn: Turn,
    away: set[int],
    at: datetime,
    hold: Callable[[], None],
) -> None:
    # Those that wait for an unreachable cluster do not use up the limit.
    reachable = (row for row in rows if row.node.cluster_id not in away)
    for row in islice(reachable, BATCH):
        hold()
        details = {"isolation": row.uid}
        try:
            turn(row, at)
        except IllegalTransition as race:
            log.info("a burn-in gave way", extra={**details, "race": str(race)})
        except (ClusterError, AdapterNotFound) as error:
            if isinstance(error, ClusterUnavailable):
                away.add(row.node.cluster_id)
            log.warning("a burn-in waits for its cluster", extra={**details, "error": str(error)})
        except Exception:
            # A failing burn-in run must not affect the others; it is retried in the next run.
            log.exception("a burn-in's turn failed", extra=details)


def _isolations_due_for_burn_in(standing: QuerySet[Isolation]) -> QuerySet[Isolation]:
    """Automatically only once, and only for isolations by rules: after that a user has to decide."""
    first = Q(burn_ins=0, actor_name="")
    return standing.filter(Q(test_asked_at__isnull=False) | first, state=IsolationState.EMPTY)


def _may_start_burn_in(
    row: Isolation,
    faults: Iterable[FaultView],
    severities: FaultSeverities,
    policy: DecisionPolicy,
    at: datetime,
) -> bool:
    """A request of a user counts at once; for rules the cause must have been absent for a while."""
    if row.test_asked_at is not None:
        return True
    return not release_blocker_reason(
        faults, isolation=_isolation_view_of_row(row), severities=severities, policy=policy, at=at
    )


def _isolation_view_of_row(row: Isolation) -> IsolationView:
    card = row.card.uid if row.card else ""
    return IsolationView(node=row.node.uid, card=card, proved_at=row.proved_at)


def _record_failed_burn_in(row: Isolation, reason: str, at: datetime) -> None:
    try:
        moves.burn_in_revoke_pass(row=row, reason=reason, at=at)
    except IllegalTransition as race:
        log.info("a burn-in gave way", extra={"isolation": row.uid, "race": str(race)})


def _begin_burn_in(row: Isolation, at: datetime) -> None:
    try:
        runs.burn_in_launch(
            name=moves.burn_in_launch_name(row), node=row.node, cards=_isolated_cards(row)
        )
    except runs.BurnInImpossible as impossible:
        moves.burn_in_record_impossible(row=row, reason=str(impossible))
        return
    moves.burn_in_begin(row=row, at=at)


def _observe_burn_in(row: Isolation, at: datetime) -> None:
    adapter, name = _cluster_adapter(row), moves.burn_in_launch_name(row)
    observed = adapter.observe([name]).get(name)
    if observed is None:
        try:
            adapter.launch(
                runs.burn_in_launch(name=name, node=row.node, cards=_isolated_cards(row))
            )
        except (LaunchRefused, runs.BurnInImpossible) as refusal:
            result = runs.BurnInResult(
                passed=False,
                message=Reason(
                    "launch.start.failed",
                    "the workload could not be started: {reason}",
                    reason=str(refusal),
                ),
            )
            moves.burn_in_end(row=row, result=result, at=at)
    elif observed.ended:
        result = runs.burn_in_result(adapter, name, observed)
        moves.burn_in_end(row=row, result=result, at=at)


def _remove_burn_in(row: Isolation, _: datetime) -> None:
    adapter, name = _cluster_adapter(row), row.evidence[moves.LAUNCH]
    observed = adapter.observe([name]).get(name)
    if observed is not None and not observed.ended:
        adapter.stop(name, grace=timedelta())
        return
    adapter.remove(name)
    moves.burn_in_record_launch_removed(row=row)


def _isolated_cards(row: Isolation) -> list[Card]:
    return cards_isolated_with(row.place, Card.objects.filter(node=row.node_id).order_by("index"))


def _cluster_adapter(row: Isolation) -> ClusterAdapter:
    """:raises ClusterUnavailable: if the cluster cannot be contacted with its options."""
    try:
        return fleet.cluster_adapter(row.node.cluster)
    except (ClusterError, AdapterNotFound) as error:
        raise ClusterUnavailable(str(error)) from error
