"""The health snapshot of the fleet in a fixed number of queries, and the health policy."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from functools import lru_cache
from operator import itemgetter
from typing import Any

from django.db.models import Max, Q, QuerySet

from apps.fleet.models import Cluster
from apps.jobs.models import Attempt
from apps.monitoring.models import Decision, Fault, HealthPolicy, Isolation
from apps.monitoring.selectors.faults import fault_meaning
from apps.quotas.models import Allocation
from controlplane.domain.common.accelerators import CardState
from controlplane.domain.health.faults import FaultLevel
from controlplane.domain.health.snapshots import (
    AttemptRunView,
    CardView,
    CrashOrigin,
    DecisionPolicy,
    FaultView,
    HealthAction,
    HealthSnapshot,
    IsolationView,
    NodeView,
)
from controlplane.domain.health.suspicions import find_crash_signature
from controlplane.domain.jobs.lifecycle import AttemptState
from controlplane.persistence.transactions import fetch_rows
from controlplane.ports import adapter_registry
from controlplane.ports.clusters import REMEDIATED_BY_NINEFOLD, REMEDIATION_LABEL, ExitCause

_ANSWERED = (Decision.Outcome.DONE, Decision.Outcome.OVERTAKEN)


def health_snapshot(*, policy: DecisionPolicy, at: datetime) -> HealthSnapshot:
    """Load the clusters in which something has to be decided: most runs read few rows.

    Call it in one transaction that reads a snapshot.
    """
    # Separate queries: each has its own index, and a combined one would scan the whole table.
    standing, settling = (
        _fault_rows(Q(ended_at=None)),
        _fault_rows(Q(ended_at__gte=at - policy.settle)),
    )
    live = sorted((*standing, *settling), key=itemgetter("pk"))
    isolations = list(_isolation_rows())
    runs = attempt_runs_since(at - policy.suspicion_within, at=at)
    if not (live or isolations or runs):
        return HealthSnapshot(nodes={}, faults=())
    unhealthy = {fault["node_id"] for fault in live} | {each["node_id"] for each in isolations}
    since = at - max((policy.occurrences_within, *_vendor_repeat_windows()))
    past = _fault_rows(Q(node__in=unhealthy, ended_at__gte=since, ended_at__lt=at - policy.settle))
    faults = [*live, *past]
    decided = _strongest_actions([fault["pk"] for fault in faults])
    asking = {
        fault["node_id"]
        for fault in live
        if _fault_needs_decision(_fault_view_of_row(fault), decided)
    }
    asking |= {each["node_id"] for each in isolations if each["proved_at"]}
    crashed = {uid for run in runs if run.failed for uid in run.places}
    return HealthSnapshot(
        nodes=_load_node_views(asking, crashed),
        faults=tuple(map(_fault_view_of_row, faults)),
        decided=decided,
        recent=_recent_actions(
            at - policy.window, (action for action in HealthAction if action.removes_capacity)
        ),
        restarted=_recent_actions(at - policy.window, (HealthAction.RESTART_JOB,)),
        released=_last_release_times(unhealthy, crashed),
        runs=runs,
        isolations=tuple(_isolation_view_of_values(row) for row in isolations),
    )


def _fault_needs_decision(fault: FaultView, decided: Mapping[str, HealthAction]) -> bool:
    """Whether the action for its level may not have been taken yet.

    A false positive only costs time.
    """
    done = decided.get(fault.uid)
    return done is None or fault.lasting is not None or done.rank < fault.level - 1


def _fault_rows(which: Q) -> Iterable[Mapping[str, Any]]:
    return (
        Fault.objects.filter(which, node__removed_at=None)
        .order_by("pk")
        .values(
            "pk",
            "uid",
            "node_id",
            "node__uid",
            "card__uid",
            "origin",
            "code",
            "vendor",
            "level",
            "began_at",
            "reported_at",
            "ended_at",
            "count",
        )
    )


def _isolation_rows() -> Iterable[Mapping[str, Any]]:
    return Isolation.objects.filter(ended_at=None, node__removed_at=None).values(
        "node_id", "node__uid", "card__uid", "proved_at", "actor_name"
    )


def _fault_view_of_row(row: Mapping[str, Any]) -> FaultView:
    meaning = fault_meaning(row["vendor"], row["code"])
    return FaultView(
        uid=row["uid"],
        node=row["node__uid"],
        card=row["card__uid"] or "",
        origin=row["origin"],
        code=row["code"],
        level=FaultLevel(row["level"]),
        began_at=row["began_at"],
        reported_at=row["reported_at"],
        ended_at=row["ended_at"],
        count=row["count"],
        repeat_rule=meaning.repeat_rule if meaning else None,
        lasting=meaning.lasting if meaning else None,
    )


def _vendor_repeat_windows() -> tuple[timedelta, ...]:
    faults = (plugin.profile().faults for plugin in adapter_registry.chip_plugins().values())
    return tuple(each.within for one in faults for each in one.repeat_rules.values())


def _isolation_view_of_values(row: Mapping[str, Any]) -> IsolationView:
    return IsolationView(
        node=row["node__uid"],
        card=row["card__uid"] or "",
        proved_at=row["proved_at"],
        by_user=bool(row["actor_name"]),
    )


def _load_node_views(unhealthy: Collection[int], uids: Collection[str]) -> dict[str, NodeView]:
    """Every node of the clusters that these nodes are in, with its cards: guards count over whole pools."""
    if not unhealthy and not uids:
        return {}
    rows = fetch_rows(
        """
        WITH concerned AS (
            SELECT DISTINCT cluster_id FROM fleet_node WHERE id = ANY(%s) OR uid = ANY(%s)
        )
        SELECT node.uid, cluster.uid, cluster.name, cluster.binding, node.labels ->> %s,
               card.uid, card.chip, card.state, claim.uid, figures.at,
               EXISTS (SELECT FROM monitoring_isolation AS isolation
                        WHERE isolation.node_id = node.id AND isolation.ended_at IS NULL
                          AND isolation.actor_name <> ''
                          AND (isolation.card_id IS NULL OR isolation.card_id = card.id
                               OR isolation.card_id = card.parent_id))
          FROM fleet_node AS node
          JOIN concerned USING (cluster_id)
          JOIN fleet_cluster AS cluster ON cluster.id = node.cluster_id AND cluster.removed_at IS NULL
          LEFT JOIN fleet_card AS card ON card.node_id = node.id AND card.removed_at IS NULL
          LEFT JOIN quotas_allocation AS given ON given.card_id = card.id AND given.released_at IS NULL
          LEFT JOIN quotas_claim AS claim ON claim.id = given.claim_id
          LEFT JOIN telemetry_cardfigures AS figures ON figures.card_id = card.id
         WHERE node.removed_at IS NULL
         ORDER BY node.uid, card.uid
        """,
        [list(unhealthy), list(uids), REMEDIATION_LABEL],
    )
    return _node_views(rows)


def _node_views(rows: Iterable[tuple[Any, ...]]) -> dict[str, NodeView]:
    by_node: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
    for row in rows:
        by_node[str(row[0])].append(row)
    return {uid: _node_view_of_rows(uid, own) for uid, own in by_node.items()}


def _node_view_of_rows(uid: str, rows: list[tuple[Any, ...]]) -> NodeView:
    _, cluster, name, binding, keeper, *_ = rows[0]
    cards = tuple(
        CardView(uid=card, state=CardState(state), claim=claim or "", by_user=by_user)
        for *_, card, _, state, claim, _, by_user in rows
        if card is not None
    )
    chips = [row[6] for row in rows if row[6]]
    seen = [row[9] for row in rows if row[9] is not None]
    return NodeView(
        uid=uid,
        cluster=cluster,
        pool=f"{max(chips, key=chips.count)} in {name}" if chips else f"{name}",
        cards=cards,
        last_seen_at=max(seen, default=None),
        keeper="" if keeper in (None, REMEDIATED_BY_NINEFOLD) else keeper,
        binds_by_node=binding == Cluster.BindingMode.NODE,
    )


def _strongest_actions(faults: Collection[int]) -> dict[str, HealthAction]:
    """The strongest that was done about each of these faults."""
    done = Decision.objects.filter(fault__in=faults, outcome__in=_ANSWERED).order_by()
    strongest: dict[str, HealthAction] = {}
    for fault, action in done.values_list("fault__uid", "action").distinct():
        known = strongest.get(fault)
        if known is None or HealthAction(action).rank > known.rank:
            strongest[fault] = HealthAction(action)
    return strongest


def _recent_actions(
    since: datetime, actions: Iterable[HealthAction]
) -> tuple[tuple[str, datetime], ...]:
    """What rules did to which node, and when."""
    done = Decision.objects.filter(
        outcome=Decision.Outcome.DONE, actor_name="", action__in=list(actions), at__gt=since
    )
    return tuple(done.order_by("at").values_list("node__uid", "at"))


def _last_release_times(nodes: Collection[int], uids: Collection[str]) -> dict[str, datetime]:
    """Last release of each card of these nodes, and of each node as a whole."""
    back = Isolation.objects.filter(Q(node__in=nodes) | Q(node__uid__in=uids))
    rows = back.filter(ended_at__isnull=False).order_by().values_list("node__uid", "card__uid")
    return {card or node: last for node, card, last in rows.annotate(last=Max("ended_at"))}


def health_policy() -> HealthPolicy:
    """The current policy; defaults if it was never changed."""
    return HealthPolicy.objects.select_related("changed_by").first() or HealthPolicy()


#: The cause is the program or its spec, whatever the signature.
_OF_THE_PROGRAM = frozenset(
    {ExitCause.OUT_OF_MEMORY, ExitCause.OUT_OF_TIME, ExitCause.DISK_FULL, ExitCause.NOT_PREPARED}
)
_LATELY = timedelta(minutes=10)
#: Only the latest crashes: a large number is usually caused by one user's program.
_MOST = 500

CardIndex = Mapping[str, tuple[str, ...]]


def attempt_runs_since(since: datetime, *, at: datetime) -> tuple[AttemptRunView, ...]:
    """Attempts that crashed since then, and those that succeeded on the same nodes or of the same jobs.

    Empty, after one query, without recent crashes: earlier ones were considered then.
    """
    ended = Attempt.objects.filter(ended_at__gte=since, started_at__isnull=False)
    if not ended.filter(state=AttemptState.FAILED, ended_at__gte=at - _LATELY).exists():
        return ()
    crashed = list(
        _attempt_rows(ended.filter(state=AttemptState.FAILED).order_by("-ended_at")[:_MOST])
    )
    if not crashed:
        return ()
    places = _cards_of_claims([row["claim_uid"] for row in crashed])
    nodes = {node for place in places.values() for node in place}
    there = Allocation.objects.filter(node__uid__in=nodes, allocated_at__gte=since)
    well = ended.filter(state=AttemptState.SUCCEEDED)
    good = list(
        _attempt_rows(
            (
                well.filter(job__in=[row["job_id"] for row in crashed])
                | well.filter(claim_uid__in=there.values("claim__uid"))
            ).order_by("-ended_at")[: 4 * _MOST]
        )
    )
    places |= _cards_of_claims([row["claim_uid"] for row in good])
    return tuple(
        AttemptRunView(
            job=row["job__uid"],
            owner=row["job__created_by__uid"],
            places=places[row["claim_uid"]],
            ended_at=row["ended_at"],
            failed=_attempt_crash_origin(row) if row["state"] == AttemptState.FAILED else None,
        )
        for row in (*crashed, *good)
        if row["claim_uid"] in places
    )


def _attempt_rows(attempts: QuerySet[Attempt]) -> Iterable[Mapping[str, Any]]:
    return attempts.values(
        "uid",
        "state",
        "exit_cause",
        "ended_at",
        "claim_uid",
        "job_id",
        "job__uid",
        "job__created_by__uid",
    )


def _cards_of_claims(claims: Collection[str]) -> dict[str, CardIndex]:
    """Claim → node → the cards that it held there, released or not."""
    rows = Allocation.objects.filter(claim__uid__in=claims).order_by("card__uid")
    held: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for claim, node, card in rows.values_list("claim__uid", "node__uid", "card__uid"):
        held[claim][node].append(card)
    return {
        claim: {node: tuple(cards) for node, cards in nodes.items()}
        for claim, nodes in held.items()
    }


def _attempt_crash_origin(row: Mapping[str, Any]) -> CrashOrigin:
    if row["exit_cause"] in _OF_THE_PROGRAM:
        return CrashOrigin.PROGRAM
    return _crash_origin_from_log(row["uid"])


@lru_cache(maxsize=4096)
def _crash_origin_from_log(uid: str) -> CrashOrigin:
    """By what an ended attempt left in its log, which does not change any more."""
    tail = Attempt.objects.filter(uid=uid).values_list("log_tail", flat=True).first()
    crash = find_crash_signature(tail or "")
    return crash.blame if crash else CrashOrigin.UNCLEAR
