"""What is empty is tested, and what the test found is written down.

::

    EMPTY ── settled, or a person asks ─▶ TESTING ── launch, observe ─▶ proved (goes back by a decision)
      ▲                                     │
      └──────────── failed ─────────────────┘

A turn that dies between any two lines is made again: the name of the Launch derives from the row, and launching
and removing tolerate repetition.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from itertools import islice

from django.db.models import Q, QuerySet

from apps.fleet import selectors as fleet
from apps.fleet.models import Card
from apps.monitoring.models import Isolation
from apps.monitoring.services import burn_ins, provings
from apps.monitoring.services.isolations import covered_by
from controlplane.domain.common.state_machine import IllegalTransition
from controlplane.domain.health.decisions import FaultView, IsolationView, Policy, Situation
from controlplane.domain.health.grades import Grades
from controlplane.domain.health.isolations import IsolationState, disproved, unsettled
from controlplane.ports.clusters import (
    ClusterAdapter,
    ClusterError,
    ClusterUnavailable,
    LaunchRefused,
)
from controlplane.ports.registry import UnknownAdapter

log = logging.getLogger(__name__)

#: Burn-ins in one turn: each may wait for its cluster.
BATCH = 16

Turn = Callable[[Isolation, datetime], None]


def burn_ins_turn(
    *, situation: Situation, policy: Policy, at: datetime, hold: Callable[[], None]
) -> None:
    """Begin those whose time has come, take one turn for each that runs, remove what is left of the others.

    :param hold: called before each step; what it raises ends the turn there.
    """
    rows = Isolation.objects.select_related("node__cluster", "card").order_by("pk")
    # Of a cluster that was removed nobody can ask anything any more.
    rows = rows.filter(node__removed_at=None)
    standing = rows.filter(ended_at=None)
    grades = Grades(situation.faults, situation.released, policy, at)
    by_node: dict[str, list[FaultView]] = defaultdict(list)
    for fault in situation.faults:
        by_node[fault.node].append(fault)
    settled = [
        row for row in _due(standing) if _is_settled(row, by_node[row.node.uid], grades, policy, at)
    ]
    proved = standing.filter(state=IsolationState.TESTING, proved_at__isnull=False, actor_name="")
    for row in proved:
        if why := disproved(by_node[row.node.uid], isolation=_view(row), grades=grades):
            _disprove(row, why, at)
    # Clusters that did not answer: nobody waits for them once more in this turn.
    away: set[int] = set()
    _each(settled, _begin, away, at, hold)
    testing = standing.filter(state=IsolationState.TESTING, proved_at=None)
    _each(testing, _follow, away, at, hold)
    over = ~Q(state=IsolationState.TESTING) | Q(proved_at__isnull=False)
    _each(rows.filter(over, evidence__has_key=provings.LAUNCH), _remove, away, at, hold)


def _each(
    rows: Iterable[Isolation],
    turn: Turn,
    away: set[int],
    at: datetime,
    hold: Callable[[], None],
) -> None:
    # Those that wait for a cluster that is away take nobody else's place.
    reachable = (row for row in rows if row.node.cluster_id not in away)
    for row in islice(reachable, BATCH):
        hold()
        told = {"isolation": row.uid}
        try:
            turn(row, at)
        except IllegalTransition as race:
            log.info("a burn-in gave way", extra={**told, "race": str(race)})
        except (ClusterError, UnknownAdapter) as error:
            if isinstance(error, ClusterUnavailable):
                away.add(row.node.cluster_id)
            log.warning("a burn-in waits for its cluster", extra={**told, "error": str(error)})
        except Exception:
            # One burn-in's trouble must not stop the others; the next turn looks again.
            log.exception("a burn-in's turn failed", extra=told)


def _due(standing: QuerySet[Isolation]) -> QuerySet[Isolation]:
    """By itself only once, and only what rules took out: after that a person has to look first."""
    first = Q(burn_ins=0, actor_name="")
    return standing.filter(Q(test_asked_at__isnull=False) | first, state=IsolationState.EMPTY)


def _is_settled(
    row: Isolation, faults: Iterable[FaultView], grades: Grades, policy: Policy, at: datetime
) -> bool:
    """A person who asks has looked; rules wait until what was wrong has been away for a while."""
    if row.test_asked_at is not None:
        return True
    return not unsettled(faults, isolation=_view(row), grades=grades, policy=policy, at=at)


def _view(row: Isolation) -> IsolationView:
    card = row.card.uid if row.card else ""
    return IsolationView(node=row.node.uid, card=card, proved_at=row.proved_at)


def _disprove(row: Isolation, why: str, at: datetime) -> None:
    try:
        provings.burn_in_disprove(row=row, reason=why, at=at)
    except IllegalTransition as race:
        log.info("a burn-in gave way", extra={"isolation": row.uid, "race": str(race)})


def _begin(row: Isolation, at: datetime) -> None:
    try:
        burn_ins.burn_in_launch(name=provings.launch_name(row), node=row.node, cards=_cards(row))
    except burn_ins.BurnInImpossible as impossible:
        provings.burn_in_refuse(row=row, reason=str(impossible))
        return
    provings.burn_in_begin(row=row, at=at)


def _follow(row: Isolation, at: datetime) -> None:
    adapter, name = _adapter(row), provings.launch_name(row)
    observed = adapter.observe([name]).get(name)
    if observed is None:
        try:
            adapter.launch(burn_ins.burn_in_launch(name=name, node=row.node, cards=_cards(row)))
        except (LaunchRefused, burn_ins.BurnInImpossible) as refusal:
            result = burn_ins.BurnInResult(
                passed=False, words=f"it could not be started: {refusal}"
            )
            provings.burn_in_end(row=row, result=result, at=at)
    elif observed.ended:
        result = burn_ins.burn_in_result(adapter, name, observed)
        provings.burn_in_end(row=row, result=result, at=at)


def _remove(row: Isolation, _: datetime) -> None:
    adapter, name = _adapter(row), row.evidence[provings.LAUNCH]
    observed = adapter.observe([name]).get(name)
    if observed is not None and not observed.ended:
        adapter.stop(name, grace=timedelta())
        return
    adapter.remove(name)
    provings.burn_in_forget(row=row)


def _cards(row: Isolation) -> list[Card]:
    return covered_by(row, Card.objects.filter(node=row.node_id).order_by("index"))


def _adapter(row: Isolation) -> ClusterAdapter:
    """:raises ClusterUnavailable: if its options, too, are such that nobody can ask it anything."""
    try:
        return fleet.cluster_adapter(row.node.cluster)
    except (ClusterError, UnknownAdapter) as error:
        raise ClusterUnavailable(str(error)) from error
