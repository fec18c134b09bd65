"""Preview of a queue change: the same plan under the tree as it is and as it would be.

Gains are listed for each queue and chip, evictions claim by claim. Only what the change causes is listed: what
the next cycle would do anyway is in both plans. Nothing is changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from controlplane.domain.quotas.queue_documents import Documents, queue_snapshots
from controlplane.domain.quotas.queues import TOTAL
from controlplane.domain.scheduling.cycle import plan_cycle
from controlplane.domain.scheduling.plans import ClaimEviction, SchedulingPlan, SchedulingPolicy
from controlplane.domain.scheduling.snapshots import RunningClaim, SchedulingSnapshot


def queue_preview_policy(policy: SchedulingPolicy) -> SchedulingPolicy:
    """Return the policy with limits as if several cycles ran in a row."""
    return replace(
        policy, placements_per_cycle=400, attempts_per_cycle=4000, reclaims_per_cycle=128
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueCapacityChange:
    """Entitlements and cards of one queue and chip, or in all, before and after; the change may be negative."""

    uid: str
    queue: str
    #: A chip, or ``TOTAL``.
    chip: str
    guaranteed_before: int
    guaranteed_after: int
    cap_before: int | None
    cap_after: int | None
    #: Additional cards that pending claims would get now: free ones, and reclaimed ones. Negative if they would
    #: get fewer.
    cards_now: int = 0
    #: Uids of pending claims that would start now, or as soon as others have stopped, and would not otherwise.
    starting: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueChangeEffects:
    gains: tuple[QueueCapacityChange, ...]
    #: Evictions that would not happen otherwise.
    evictions: tuple[ClaimEviction, ...]


def preview_effects(
    snapshot: SchedulingSnapshot,
    before: Documents,
    after: Documents,
    *,
    at: datetime,
    policy: SchedulingPolicy,
) -> QueueChangeEffects:
    """What turning one tree into the other would do to the claims of the snapshot now.

    :param snapshot: its own queues count only for the cards that they use.
    """
    used = {uid: view.used for uid, view in snapshot.queues.items()}
    plans = [
        plan_cycle(_snapshot_with_queues(snapshot, documents, used), policy, at)
        for documents in (before, after)
    ]
    running = {claim.uid: claim for claim in snapshot.running}
    anyway = {eviction.claim for eviction in plans[0].revocations}
    return QueueChangeEffects(
        gains=tuple(
            _queue_capacity_changes(before, after, _StartsBeforeAfter(snapshot, plans, running))
        ),
        evictions=tuple(one for one in plans[1].revocations if one.claim not in anyway),
    )


def _snapshot_with_queues(
    snapshot: SchedulingSnapshot, documents: Documents, used: Mapping[str, Mapping[str, int]]
) -> SchedulingSnapshot:
    """The snapshot with that tree; claims of queues that it lacks are left out."""
    claims = tuple(claim for claim in snapshot.claims if claim.queue in documents)
    return replace(snapshot, queues=queue_snapshots(documents, used), claims=claims)


class _StartsBeforeAfter:
    """Which pending claims get cards under each of the two trees, and how many of which chip."""

    def __init__(
        self,
        snapshot: SchedulingSnapshot,
        plans: list[SchedulingPlan],
        running: Mapping[str, RunningClaim],
    ) -> None:
        self._queues = {claim.uid: claim.queue for claim in snapshot.claims}
        self._before, self._after = (self._cards_started(one, snapshot, running) for one in plans)

    def cards(self, queue: str, chip: str) -> int:
        """More cards of the chip, or of all chips, for claims of the queue than anyway."""
        return self._count_started_cards(self._after, queue, chip) - self._count_started_cards(
            self._before, queue, chip
        )

    def claims(self, queue: str, chip: str) -> tuple[str, ...]:
        """Claims that get cards of the chip, or any, and would not otherwise."""
        return tuple(
            claim
            for claim, got in self._after.items()
            if self._queues.get(claim) == queue
            and claim not in self._before
            and (chip == TOTAL or got[chip])
        )

    def chips(self) -> set[tuple[str, str]]:
        """Queues and chips for which the trees differ in what claims get."""
        touched = {
            (self._queues[claim], chip)
            for got in (self._before, self._after)
            for claim, cards in got.items()
            for chip in cards
        }
        return {
            (queue, chip)
            for queue, chip in touched
            if self.cards(queue, chip) or self.claims(queue, chip)
        }

    def _count_started_cards(self, got: Mapping[str, Counter[str]], queue: str, chip: str) -> int:
        return sum(
            cards.total() if chip == TOTAL else cards[chip]
            for claim, cards in got.items()
            if self._queues.get(claim) == queue
        )

    @staticmethod
    def _cards_started(
        decided: SchedulingPlan, snapshot: SchedulingSnapshot, running: Mapping[str, RunningClaim]
    ) -> dict[str, Counter[str]]:
        got: dict[str, Counter[str]] = {}
        for placement in decided.placements:
            cards = sum(replica.count or len(replica.cards) for replica in placement.replicas)
            got[placement.claim] = Counter({placement.chip: cards})
        shapes = {claim.uid: claim.shape for claim in snapshot.claims}
        for revocation in decided.revocations:
            chip = running[revocation.claim].chip
            shape = shapes[revocation.beneficiary]
            got.setdefault(revocation.beneficiary, Counter({chip: shape.fewest_cards}))
        return got


def _queue_capacity_changes(
    before: Documents, after: Documents, starts: _StartsBeforeAfter
) -> Iterator[QueueCapacityChange]:
    keys = starts.chips()
    for uid, document in {**before, **after}.items():
        old, new = before.get(uid), after.get(uid)
        chips = {chip for one in (old, new) if one is not None for chip in one.entitlements}
        keys |= {
            (uid, chip)
            for chip in chips
            if (old and old.entitlement(chip)) != (new and new.entitlement(chip))
        }
        for chip in sorted(chip for queue, chip in keys if queue == uid):
            was = old.entitlement(chip) if old else None
            now = new.entitlement(chip) if new else None
            yield QueueCapacityChange(
                uid=uid,
                queue=document.name,
                chip=chip,
                guaranteed_before=was.guaranteed if was else 0,
                guaranteed_after=now.guaranteed if now else 0,
                cap_before=was.cap if was else None,
                cap_after=now.cap if now else None,
                cards_now=starts.cards(uid, chip),
                starting=starts.claims(uid, chip),
            )
