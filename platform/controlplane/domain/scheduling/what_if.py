"""What-if analysis: the same forecast twice, before and after hypothetical changes; and the dry run of one claim.

Each change is a value that turns one snapshot into another. Both are simulated by ``forecast``; the result is
which claims would start earlier or later, and by how much. Requests are stored as JSON until they are answered.
A dry run is one plan with a hypothetical claim in its queue. Nothing is changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, TypeVar

from controlplane.domain.common.accelerators import CardState
from controlplane.domain.common.reasons import ReasonedValueError
from controlplane.domain.common.resources import Resources
from controlplane.domain.quotas.queues import QueueSnapshot, path_to_root
from controlplane.domain.scheduling.cycle import plan_cycle
from controlplane.domain.scheduling.forecast import (
    ForecastAssumptions,
    PredictedStartTime,
    forecast_starts,
)
from controlplane.domain.scheduling.plans import (
    ClaimEviction,
    ClaimPlacement,
    PendingClaim,
    SchedulingPolicy,
)
from controlplane.domain.scheduling.snapshot_simulator import SnapshotSimulator, requeued_claim
from controlplane.domain.scheduling.snapshots import (
    CardSnapshot,
    ClaimSnapshot,
    NodeSnapshot,
    SchedulingSnapshot,
)

Subject = TypeVar("Subject")


class UnknownWhatIfObject(ReasonedValueError):
    """A change names something that the snapshot does not contain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AddGuaranteedCards:
    """So many more cards of the chip are guaranteed to the queue, and it may hold them; fewer if negative."""

    queue: str
    chip: str
    cards: int

    def applied(self, snapshot: SchedulingSnapshot, _at: datetime) -> SchedulingSnapshot:
        _require_in_snapshot(self.queue, snapshot.queues, "queue")
        queues = dict(snapshot.queues)
        # What a queue is given, those above it have to have.
        for uid in path_to_root(self.queue, snapshot.queues):
            queues[uid] = self._add_to_guarantee(queues[uid])
        return replace(snapshot, queues=queues)

    def _add_to_guarantee(self, queue: QueueSnapshot) -> QueueSnapshot:
        now = queue.quota(self.chip)
        own = queue.uid == self.queue or now.guaranteed > 0
        cap = None if now.cap is None else max(0, now.cap + self.cards)
        guaranteed = max(0, now.guaranteed + self.cards) if own else 0
        total = queue.total
        if total.cap is not None:
            total = replace(total, cap=max(0, total.cap + self.cards))
        then = replace(now, guaranteed=guaranteed, cap=cap, reserved=min(now.reserved, guaranteed))
        return replace(queue, entitlements={**queue.entitlements, self.chip: then}, total=total)


@dataclass(frozen=True, slots=True, kw_only=True)
class AddNodes:
    """More nodes like an existing one, empty and healthy."""

    like: str
    nodes: int = 1

    def applied(self, snapshot: SchedulingSnapshot, _at: datetime) -> SchedulingSnapshot:
        model = _require_in_snapshot(self.like, {node.uid: node for node in snapshot.nodes}, "node")
        more = tuple(
            _empty_node_like(model, f"{model.uid}+{each + 1}") for each in range(self.nodes)
        )
        return replace(snapshot, nodes=(*snapshot.nodes, *more))


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainNode:
    """The node is cordoned, and what runs there is evicted and requeued."""

    node: str

    def applied(self, snapshot: SchedulingSnapshot, at: datetime) -> SchedulingSnapshot:
        node = _require_in_snapshot(self.node, {node.uid: node for node in snapshot.nodes}, "node")
        timeline = SnapshotSimulator(snapshot)
        timeline.change_node(replace(node, schedulable=False))
        for running in snapshot.running:
            if any(replica.node == self.node for replica in running.replicas):
                timeline.end(running.uid)
                timeline.submit(requeued_claim(running, at=at))
        return timeline.snapshot()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePriority:
    """A pending claim gets another priority."""

    claim: str
    priority: int

    def applied(self, snapshot: SchedulingSnapshot, _at: datetime) -> SchedulingSnapshot:
        _require_in_snapshot(
            self.claim, {claim.uid: claim for claim in snapshot.claims}, "waiting claim"
        )
        return replace(
            snapshot,
            claims=tuple(
                replace(claim, priority=self.priority) if claim.uid == self.claim else claim
                for claim in snapshot.claims
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AddClaim:
    """One more pending claim."""

    claim: ClaimSnapshot

    def applied(self, snapshot: SchedulingSnapshot, _at: datetime) -> SchedulingSnapshot:
        _require_in_snapshot(self.claim.queue, snapshot.queues, "queue")
        return replace(snapshot, claims=(*snapshot.claims, self.claim))


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveClaim:
    """The claim, pending or running, is removed."""

    claim: str

    def applied(self, snapshot: SchedulingSnapshot, _at: datetime) -> SchedulingSnapshot:
        timeline = SnapshotSimulator(snapshot)
        if timeline.runs(self.claim):
            timeline.end(self.claim)
        else:
            _require_in_snapshot(
                self.claim, {claim.uid: claim for claim in snapshot.claims}, "claim"
            )
            timeline.withdraw(self.claim)
        return timeline.snapshot()


WhatIfChange = AddGuaranteedCards | AddNodes | DrainNode | ChangePriority | AddClaim | RemoveClaim


@dataclass(frozen=True, slots=True, kw_only=True)
class StartTimeChange:
    """The start of one claim, before and after."""

    claim: str
    #: None if it is not pending before, or not after.
    before: PredictedStartTime | None
    after: PredictedStartTime | None
    #: How much earlier it starts; negative if later. None where either is not within the horizon.
    gained: timedelta | None


def run_what_if(
    snapshot: SchedulingSnapshot,
    changes: Iterable[WhatIfChange],
    policy: SchedulingPolicy,
    *,
    at: datetime,
    assumptions: ForecastAssumptions | None = None,
) -> tuple[StartTimeChange, ...]:
    """Which claims would start earlier or later with the changes, applied in their order.

    The largest gain comes first, the largest loss last.

    :raises UnknownWhatIfObject: if a queue, node or claim does not exist.
    """
    before = forecast_starts(snapshot, policy, at=at, assumptions=assumptions)
    changed = apply_changes(snapshot, changes, at=at)
    after = forecast_starts(changed, policy, at=at, assumptions=assumptions)
    differences = [
        _start_difference(uid, before.get(uid), after.get(uid))
        for uid in dict.fromkeys((*before, *after))
    ]
    return tuple(
        sorted(
            differences,
            key=lambda each: (-(each.gained or timedelta(0)).total_seconds(), each.claim),
        )
    )


def apply_changes(
    snapshot: SchedulingSnapshot, changes: Iterable[WhatIfChange], *, at: datetime
) -> SchedulingSnapshot:
    """The snapshot with the changes applied; the given one is unchanged.

    :raises UnknownWhatIfObject: if a queue, node or claim does not exist.
    """
    for change in changes:
        snapshot = change.applied(snapshot, at)
    return snapshot


def _start_difference(
    uid: str, before: PredictedStartTime | None, after: PredictedStartTime | None
) -> StartTimeChange:
    gained = None
    if before and after and before.starts_at and after.starts_at:
        gained = before.starts_at - after.starts_at
    return StartTimeChange(claim=uid, before=before, after=after, gained=gained)


def _require_in_snapshot(uid: str, known: Mapping[str, Subject], what: str) -> Subject:
    if uid not in known:
        raise UnknownWhatIfObject(
            "snapshot.subject.not_found",
            "there is no {kind} {uid} in this snapshot",
            kind=what,
            uid=repr(uid),
        )
    return known[uid]


def _empty_node_like(model: NodeSnapshot, uid: str) -> NodeSnapshot:
    cards = tuple(
        CardSnapshot(
            uid=f"{uid}/{card.index}", index=card.index, chip=card.chip, state=CardState.USABLE
        )
        for card in model.cards
    )
    return replace(model, uid=uid, name=uid, cards=cards, allocated=Resources(), schedulable=True)


#: Most that one request adds or removes.
MOST_CARDS = 100_000
MOST_NODES = 1000


class WhatIfState(StrEnum):
    ASKED = "asked"
    ANSWERED = "answered"
    #: It was about something that is not there any more.
    REFUSED = "refused"


#: By the name under which a stored request has them.
CHANGE_KINDS: Mapping[str, type[WhatIfChange]] = {
    "more_cards": AddGuaranteedCards,
    "more_nodes": AddNodes,
    "drain_node": DrainNode,
    "urgent": ChangePriority,
    "cancelled": RemoveClaim,
}
_NAMES = {kind: name for name, kind in CHANGE_KINDS.items()}


def changes_as_json(changes: Iterable[WhatIfChange]) -> list[dict[str, Any]]:
    """``[{"kind": "more_cards", "queue": …}]``.

    :raises KeyError: for a claim that is not there yet: such a question is not kept.
    """
    return [{"kind": _NAMES[type(change)], **asdict(change)} for change in changes]


def changes_from_json(written: Sequence[Mapping[str, Any]]) -> tuple[WhatIfChange, ...]:
    """What ``changes_as_json`` wrote.

    :raises KeyError: if a kind is unknown.
    :raises TypeError: if a part is missing or too much.
    """
    return tuple(
        CHANGE_KINDS[each["kind"]](
            **{name: value for name, value in each.items() if name != "kind"}
        )
        for each in written
    )


class DryRunOutcome(StrEnum):
    """What would happen to the claim."""

    #: It would be placed immediately.
    STARTS = "starts"
    #: Others would be evicted for it.
    RECLAIMS = "reclaims"
    PENDING = "waits"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimDryRun:
    outcome: DryRunOutcome
    #: Where it would go; None unless it starts.
    placement: ClaimPlacement | None = None
    #: Why it would be pending; None if it would start.
    refusal: PendingClaim | None = None
    #: Running claims that would be evicted for it.
    stopping: tuple[ClaimEviction, ...] = ()


def dry_run_claim(
    snapshot: SchedulingSnapshot, claim: ClaimSnapshot, policy: SchedulingPolicy, *, at: datetime
) -> ClaimDryRun:
    """Return what one plan would decide for one more claim, next to those that are pending already.

    :raises UnknownWhatIfObject: if there is no such queue in the snapshot.
    :raises ValueError: if it accepts no chip.
    """
    decided = plan_cycle(apply_changes(snapshot, [AddClaim(claim=claim)], at=at), policy, at)
    placement = next((one for one in decided.placements if one.claim == claim.uid), None)
    if placement is not None:
        return ClaimDryRun(outcome=DryRunOutcome.STARTS, placement=placement)
    stopping = tuple(one for one in decided.revocations if one.beneficiary == claim.uid)
    return ClaimDryRun(
        outcome=DryRunOutcome.RECLAIMS if stopping else DryRunOutcome.PENDING,
        refusal=next((one for one in decided.pending if one.claim == claim.uid), None),
        stopping=stopping,
    )
