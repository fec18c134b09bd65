"""What would be different if: the same forecast twice, before and after changes that nobody made.

Each change is a value that turns one snapshot into another. Both are played forward by ``forecast``; what comes
back is who would start earlier, who later, and by how much. Nothing is touched.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TypeVar

from controlplane.domain.accelerators import CardState
from controlplane.domain.quotas import Entitlement, way_up
from controlplane.domain.resources import Resources
from controlplane.domain.scheduling.forecast import Assumptions, Forecast, forecast
from controlplane.domain.scheduling.policies import Policy
from controlplane.domain.scheduling.snapshots import (
    CardView,
    ClaimView,
    NodeView,
    QueueView,
    Snapshot,
)
from controlplane.domain.scheduling.timelines import Timeline, waits_again

Subject = TypeVar("Subject")


class UnknownSubject(ValueError):
    """A change is about something that the snapshot does not hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MoreCards:
    """So many more cards of the chip are guaranteed to the queue, and it may hold them; fewer if negative."""

    queue: str
    chip: str
    cards: int

    def applied(self, snapshot: Snapshot, _at: datetime) -> Snapshot:
        _known(self.queue, snapshot.queues, "queue")
        queues = dict(snapshot.queues)
        # What a queue is given, those above it have to have.
        for uid in way_up(self.queue, snapshot.queues):
            queues[uid] = self._given(queues[uid])
        return replace(snapshot, queues=queues)

    def _given(self, queue: QueueView) -> QueueView:
        now = queue.entitlements.get(self.chip, Entitlement())
        own = queue.uid == self.queue or now.guaranteed > 0
        cap = None if now.cap is None else max(0, now.cap + self.cards)
        guaranteed = max(0, now.guaranteed + self.cards) if own else 0
        total = queue.total
        if total.cap is not None:
            total = replace(total, cap=max(0, total.cap + self.cards))
        then = replace(now, guaranteed=guaranteed, cap=cap, reserved=min(now.reserved, guaranteed))
        return replace(queue, entitlements={**queue.entitlements, self.chip: then}, total=total)


@dataclass(frozen=True, slots=True, kw_only=True)
class MoreNodes:
    """So many more nodes like that one, empty and sound."""

    like: str
    nodes: int = 1

    def applied(self, snapshot: Snapshot, _at: datetime) -> Snapshot:
        model = _known(self.like, {node.uid: node for node in snapshot.nodes}, "node")
        more = tuple(_empty(model, f"{model.uid}+{each + 1}") for each in range(self.nodes))
        return replace(snapshot, nodes=(*snapshot.nodes, *more))


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainNode:
    """No work goes to the node any more, and what runs there stops and waits again."""

    node: str

    def applied(self, snapshot: Snapshot, at: datetime) -> Snapshot:
        node = _known(self.node, {node.uid: node for node in snapshot.nodes}, "node")
        timeline = Timeline(snapshot)
        timeline.change_node(replace(node, schedulable=False))
        for running in snapshot.running:
            if any(replica.node == self.node for replica in running.replicas):
                timeline.end(running.uid)
                timeline.submit(waits_again(running, at=at))
        return timeline.snapshot()


@dataclass(frozen=True, slots=True, kw_only=True)
class Urgent:
    """The claim that waits has another priority."""

    claim: str
    priority: int

    def applied(self, snapshot: Snapshot, _at: datetime) -> Snapshot:
        _known(self.claim, {claim.uid: claim for claim in snapshot.claims}, "waiting claim")
        return replace(
            snapshot,
            claims=tuple(
                replace(claim, priority=self.priority) if claim.uid == self.claim else claim
                for claim in snapshot.claims
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NewClaim:
    """One more claim waits."""

    claim: ClaimView

    def applied(self, snapshot: Snapshot, _at: datetime) -> Snapshot:
        _known(self.claim.queue, snapshot.queues, "queue")
        return replace(snapshot, claims=(*snapshot.claims, self.claim))


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancelled:
    """The claim, waiting or running, is gone."""

    claim: str

    def applied(self, snapshot: Snapshot, _at: datetime) -> Snapshot:
        timeline = Timeline(snapshot)
        if timeline.runs(self.claim):
            timeline.end(self.claim)
        else:
            _known(self.claim, {claim.uid: claim for claim in snapshot.claims}, "claim")
            timeline.withdraw(self.claim)
        return timeline.snapshot()


Change = MoreCards | MoreNodes | DrainNode | Urgent | NewClaim | Cancelled


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One claim, before and after."""

    claim: str
    #: None if it does not wait before, or not after.
    before: Forecast | None
    after: Forecast | None
    #: How much earlier it starts; negative if later. None where either is not within the horizon.
    gained: timedelta | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """What the changes would do; the largest gain first, the largest loss last."""

    differences: tuple[Difference, ...]
    earlier: int
    later: int
    #: Claims that start within the horizon: before, and after.
    starting_before: int
    starting_after: int
    #: All that is gained and lost together, over the claims that start in both.
    gained: timedelta


def what_if(
    snapshot: Snapshot,
    changes: Iterable[Change],
    policy: Policy,
    *,
    at: datetime,
    assumptions: Assumptions | None = None,
) -> WhatIf:
    """Who would start earlier and who later, if the changes were made now, in their order.

    :raises UnknownSubject: if one is about a queue, node or claim that is not there.
    """
    before = forecast(snapshot, policy, at=at, assumptions=assumptions)
    changed = applied(snapshot, changes, at=at)
    after = forecast(changed, policy, at=at, assumptions=assumptions)
    differences = _ranked(
        [
            _difference(uid, before.get(uid), after.get(uid))
            for uid in dict.fromkeys((*before, *after))
        ]
    )
    gains = [each.gained for each in differences if each.gained is not None]
    return WhatIf(
        differences=differences,
        earlier=sum(_sooner(each.before, each.after) for each in differences),
        later=sum(_sooner(each.after, each.before) for each in differences),
        starting_before=sum(each.starts_at is not None for each in before.values()),
        starting_after=sum(each.starts_at is not None for each in after.values()),
        gained=sum(gains, timedelta(0)),
    )


def applied(snapshot: Snapshot, changes: Iterable[Change], *, at: datetime) -> Snapshot:
    """The snapshot as if the changes had been made; the one given stays as it is.

    :raises UnknownSubject: if one is about a queue, node or claim that is not there.
    """
    for change in changes:
        snapshot = change.applied(snapshot, at)
    return snapshot


def _difference(uid: str, before: Forecast | None, after: Forecast | None) -> Difference:
    gained = None
    if before and after and before.starts_at and after.starts_at:
        gained = before.starts_at - after.starts_at
    return Difference(claim=uid, before=before, after=after, gained=gained)


def _sooner(one: Forecast | None, other: Forecast | None) -> bool:
    """Whether a claim that waits in both starts sooner in the other."""
    if one is None or other is None or other.starts_at is None:
        return False
    return one.starts_at is None or other.starts_at < one.starts_at


def _ranked(differences: Sequence[Difference]) -> tuple[Difference, ...]:
    return tuple(
        sorted(
            differences,
            key=lambda each: (-(each.gained or timedelta(0)).total_seconds(), each.claim),
        )
    )


def _known(uid: str, known: Mapping[str, Subject], what: str) -> Subject:
    if uid not in known:
        raise UnknownSubject(f"there is no {what} {uid!r} in this snapshot")
    return known[uid]


def _empty(model: NodeView, uid: str) -> NodeView:
    cards = tuple(
        CardView(
            uid=f"{uid}/{card.index}", index=card.index, chip=card.chip, state=CardState.USABLE
        )
        for card in model.cards
    )
    return replace(model, uid=uid, name=uid, cards=cards, promised=Resources(), schedulable=True)
