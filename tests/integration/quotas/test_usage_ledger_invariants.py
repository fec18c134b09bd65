"""Invariants of claims and the ledger under random histories with real threads."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

import pytest
from django.db.models import Count, F, Q, Sum

from apps.accounts.models import User
from apps.fleet.models import Card
from apps.quotas import selectors, services
from apps.quotas.models import Allocation, Claim, ClaimTransition, Queue, UsageRecord
from controlplane.domain.common.accelerators import CardState
from controlplane.domain.quotas.claims import ClaimEvent, ClaimState, ReleaseReason
from controlplane.domain.quotas.queues import QueueSnapshot, QueueState
from tests.integration.company import Company, entitle, found
from tests.integration.quotas.sharing import Sharing
from tests.integration.threads import at_once

HOLDING = (ClaimState.ADMITTED, ClaimState.REVOKING)
CARDS, STEPS = 8, 60


@dataclass(kw_only=True)
class World:
    """Eight cards, of which at most two are broken; vision and speech are guaranteed at most six together."""

    company: Company
    sharing: Sharing
    chance: random.Random
    leaves: tuple[Queue, ...] = ()
    #: Claims that held cards before the cycle.
    before: set[int] = field(default_factory=set)

    @classmethod
    def of(cls, seed: int) -> World:
        company = found(node=f"fake-{seed}", cards=CARDS)
        lab = Queue.objects.create(name="lab")
        entitle(lab, cap=6)
        vision = Queue.objects.create(name="vision", parent=lab)
        speech = Queue.objects.create(name="speech", parent=lab, max_running_per_user=2)
        entitle(vision, guaranteed=4)
        entitle(speech, guaranteed=2)
        batch = Queue.objects.create(name="batch")
        sharing = Sharing(company=company, lender=vision, batch=batch)
        world = cls(company=company, sharing=sharing, chance=random.Random(seed))
        world.leaves = (vision, speech, batch)
        return world

    # -- What happens --

    def batch_borrows_everything(self) -> None:
        for _ in range(CARDS):
            self.sharing.claim(self.sharing.batch)
        self.cycles()

    def claims_are_submitted(self) -> None:
        users = (*User.objects.order_by("pk"), None)
        for _ in range(self.chance.randint(1, 3)):
            self.sharing.claim(
                self.chance.choice((*self.leaves, self.sharing.batch)),
                cards=self.chance.choice((1, 1, 2, 4)),
                user=self.chance.choice(users),
            )

    def something_ends(self) -> None:
        holding = list(Claim.objects.filter(state__in=HOLDING).order_by("pk"))
        waiting = list(Claim.objects.filter(state=ClaimState.PENDING).order_by("pk"))
        for claims in (holding, self.chance.choice((holding, waiting))):
            if claims:
                self._release(self.chance.choice(claims))

    def evicted_claims_stop(self) -> None:
        for claim in Claim.objects.filter(state=ClaimState.REVOKING).order_by("pk"):
            self._release(claim)

    def _release(self, claim: Claim) -> None:
        services.claim_release(uid=claim.uid, reason=ReleaseReason.FINISHED, at=self.company.at)

    def a_card_breaks_or_heals(self) -> None:
        broken = Card.objects.filter(state=CardState.ISOLATED)
        if broken.count() < 2 and self.chance.random() < 0.5:
            Card.objects.filter(index=self.chance.randrange(CARDS)).update(state=CardState.ISOLATED)
        else:
            broken.update(state=CardState.USABLE)

    def queues_get_other_rights(self) -> None:
        vision, speech, batch = self.leaves
        entitle(vision, guaranteed=self.chance.choice((0, 2, 4)))
        entitle(speech, guaranteed=self.chance.choice((0, 2)), cap=self.chance.choice((2, 5)))
        state = self.chance.choice((QueueState.OPEN, QueueState.DRAINING, QueueState.CLOSED))
        Queue.objects.filter(pk=batch.pk).update(max_running_per_user=self.chance.choice((None, 1)))
        Queue.objects.filter(pk=speech.pk).update(state=state)
        # Claims are asked for in all of them.
        if state != QueueState.OPEN:
            self.cycles()
            Queue.objects.filter(pk=speech.pk).update(state=QueueState.OPEN)

    def cycles(self) -> None:
        """Run two concurrently; one of them has the lease, and maybe the other after it."""
        self.before = set(Claim.objects.filter(state__in=HOLDING).values_list("pk", flat=True))
        outcomes = at_once(self.company.schedule, self.company.schedule)
        assert all(isinstance(outcome, int) for outcome in outcomes), outcomes
        self.check()

    # -- What always holds --

    def check(self) -> None:
        held = Count("allocations", filter=Q(allocations__released_at=None))
        rows = Claim.objects.annotate(held=held)
        assert not rows.filter(state__in=HOLDING).exclude(held=F("card_count")).exists()
        assert not rows.exclude(state__in=HOLDING).exclude(held=0).exists()
        openly = Allocation.objects.filter(released_at=None)
        assert openly.count() == openly.values("card").distinct().count()
        new = Claim.objects.filter(state__in=HOLDING).exclude(pk__in=self.before)
        assert not Card.objects.filter(
            ~Q(state=CardState.USABLE), allocations__in=openly.filter(claim__in=new)
        ).exists()
        queues = selectors.scheduling_snapshot().queues
        for claim in new.select_related("queue", "user"):
            self._within_limits(claim, queues)

    def _within_limits(self, claim: Claim, queues: Mapping[str, QueueSnapshot]) -> None:
        held, running_by_user = self._up_the_tree(queues)
        for queue in self._way_up(claim.queue.uid, queues):
            cap = queue.entitlements["cpu"].cap if "cpu" in queue.entitlements else None
            assert cap is None or held[queue.uid] <= cap, queue.name
            limit = queue.max_running_per_user
            key = (queue.uid, claim.user_id)
            assert claim.user_id is None or limit is None or running_by_user[key] <= limit, (
                queue.name
            )

    def _up_the_tree(
        self, queues: Mapping[str, QueueSnapshot]
    ) -> tuple[Counter[str], Counter[tuple[str, int | None]]]:
        held, by_user = Counter[str](), Counter[tuple[str, int | None]]()
        for claim in Claim.objects.filter(state__in=HOLDING).select_related("queue"):
            for queue in self._way_up(claim.queue.uid, queues):
                held[queue.uid] += claim.card_count
                by_user[queue.uid, claim.user_id] += 1
        return held, by_user

    @staticmethod
    def _way_up(uid: str, queues: Mapping[str, QueueSnapshot]) -> list[QueueSnapshot]:
        way, above = [], queues.get(uid)
        while above is not None:
            way.append(above)
            above = queues.get(above.parent or "")
        return way

    def guarantees_are_met(self) -> None:
        """After one round of evictions no claim is first in its queue, within the guarantee, and pending."""
        self.cycles()
        self.evicted_claims_stop()
        self.cycles()
        queues = selectors.scheduling_snapshot().queues
        held, by_user = self._up_the_tree(queues)
        for leaf in self.leaves:
            first = (
                Claim.objects.filter(queue=leaf, state=ClaimState.PENDING).order_by("pk").first()
            )
            if first is None:
                continue
            way = self._way_up(leaf.uid, queues)
            stated = way[0].entitlements.get("cpu")
            guaranteed = stated.guaranteed if stated else 0
            limited = any(
                queue.max_running_per_user is not None
                and by_user[queue.uid, first.user_id] >= queue.max_running_per_user
                for queue in way
            )
            full = any(
                "cpu" in queue.entitlements
                and queue.entitlements["cpu"].cap is not None
                and held[queue.uid] + first.card_count > queue.entitlements["cpu"].cap
                for queue in way
            )
            within = held[leaf.uid] + first.card_count <= guaranteed
            assert not within or limited or full, (leaf.name, first.explanation)


@pytest.mark.parametrize("seed", [1, 2])
def test_invariants_hold_for_random_histories_of_the_ledger(
    installation: object, transactional_db: None, seed: int
) -> None:
    world = World.of(seed)
    actions: list[Callable[[], None]] = [
        world.claims_are_submitted,
        world.claims_are_submitted,
        world.claims_are_submitted,
        world.something_ends,
        world.evicted_claims_stop,
        world.a_card_breaks_or_heals,
        world.queues_get_other_rights,
        world.cycles,
        world.cycles,
    ]
    world.batch_borrows_everything()
    for _ in range(STEPS):
        world.chance.choice(actions)()
        world.company.later(timedelta(seconds=world.chance.randint(1, 90)))
    world.guarantees_are_met()

    for claim in Claim.objects.exclude(state=ClaimState.RELEASED):
        world._release(claim)
    lasted = Sum(F("released_at") - F("allocated_at"))
    allocated = Allocation.objects.aggregate(sum=lasted)["sum"] or timedelta()
    recorded = UsageRecord.objects.aggregate(sum=Sum("card_microseconds"))["sum"] or 0
    assert recorded == allocated / timedelta(microseconds=1)
    assert Claim.objects.exclude(admitted_at=None).count() > 10
    assert ClaimTransition.objects.filter(event=ClaimEvent.REVOKE).exists()
