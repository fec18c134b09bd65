"""What would happen if a queue asked for what it is owed: the real plan, with a claim that nobody made."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.db import transaction

from apps.quotas.models import Claim, Queue
from apps.quotas.selectors.forecasts import Awaited, awaited_of
from apps.quotas.selectors.sights import Sight
from apps.quotas.selectors.snapshots import snapshot
from controlplane.domain.claims import GangShape, RoleShape
from controlplane.domain.scheduling.cycle import plan
from controlplane.domain.scheduling.explain import cards_of
from controlplane.domain.scheduling.policies import Policy
from controlplane.domain.scheduling.snapshots import ClaimView, RunningView, Snapshot

#: The claim that nobody made.
_IMAGINED = "imagined"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """So many cards of a chip, so many of them on one node each."""

    queue: Queue
    chip: str
    cards: int
    together: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Loser:
    """Work that would have to stop."""

    claim: str
    work: Awaited
    queue: str
    cards: int
    #: What it has done since it last saved, which it would do again.
    lost: timedelta
    reason: str

    @property
    def lost_card_hours(self) -> float:
        return self.cards * self.lost.total_seconds() / 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class ReclaimPreview:
    """What would come of the ask."""

    ask: Ask
    #: It would start at once, on cards that nobody uses.
    starts: bool
    #: Why it starts there, who stops for it, or why it would have to wait.
    reason: str
    losers: tuple[Loser, ...]

    @property
    def cards(self) -> int:
        """Cards that would come back."""
        return sum(loser.cards for loser in self.losers)


def reclaim_preview(ask: Ask, *, sight: Sight, policy: Policy, at: datetime) -> ReclaimPreview:
    """Who would have to stop if the queue asked now. What else waits is left out: it asks first.

    :raises ValueError: if there is no whole number of replicas, or not at least one.
    """
    if ask.cards < 1 or ask.together < 1 or ask.cards % ask.together:
        raise ValueError(
            f"{ask.cards} cards are no whole number of groups of {ask.together}; "
            f"ask for a multiple of {ask.together}"
        )
    with transaction.atomic():
        seen = snapshot()
    decided = plan(_imagined(seen, ask, at=at), policy, at)
    stopping = {each.claim: each.reason for each in decided.revocations}
    told = [each.reason for each in decided.placements]
    told += [each.reason for each in decided.refusals]
    return ReclaimPreview(
        ask=ask,
        starts=bool(decided.placements),
        reason=told[0] if told else "",
        losers=_losers(
            [view for view in seen.running if view.uid in stopping], stopping, sight, at
        ),
    )


def _imagined(seen: Snapshot, ask: Ask, *, at: datetime) -> Snapshot:
    role = RoleShape(name="worker", replicas=ask.cards // ask.together, cards=ask.together)
    claim = ClaimView(
        uid=_IMAGINED,
        queue=ask.queue.uid,
        shape=GangShape(roles=(role,)),
        chips=(ask.chip,),
        priority=0,
        created_at=at,
    )
    return replace(seen, claims=(claim,))


def _losers(
    stopping: list[RunningView], reasons: dict[str, str], sight: Sight, at: datetime
) -> tuple[Loser, ...]:
    rows = {
        claim.uid: claim
        for claim in Claim.objects.filter(uid__in=reasons).select_related("team", "queue")
    }
    losers = [
        Loser(
            claim=view.uid,
            work=awaited_of(rows[view.uid], sight=sight),
            queue=rows[view.uid].queue.name,
            cards=cards_of(view.replicas),
            lost=view.lost_at(at),
            reason=reasons[view.uid],
        )
        for view in stopping
    ]
    return tuple(sorted(losers, key=lambda loser: (-loser.cards, loser.claim)))
