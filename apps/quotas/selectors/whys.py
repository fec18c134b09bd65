"""Why a claim waits, or why it got these cards: everything that a reader may be told about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Q

from apps.accounts import selectors as accounts
from apps.quotas.models import Claim
from apps.quotas.selectors.claims import SINCE
from apps.quotas.selectors.forecasts import Outlook, outlook_of
from apps.quotas.selectors.queues import Line, Share, Tree, queue_tree
from controlplane.domain.claims import ClaimState
from controlplane.domain.quotas import TOTAL
from controlplane.persistence.models import LoopState

#: The loop that gives cards to what waits.
CYCLE = "apps.quotas.tasks.run_cycle"


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """One claim before one reader."""

    claim: Claim
    #: Whether they may know what the work is called.
    named: bool
    line: Line
    #: What its queue has of each chip that it asks for, or was given; of all together, where that is stated.
    shares: tuple[Share, ...]
    #: Free in the fleet now, of each of these chips.
    free: Mapping[str, int]
    #: Claims of its queue that the scheduler takes before it, and all that wait there; None once it does not wait.
    ahead: int | None
    waiting: int
    outlook: Outlook | None
    #: When the scheduler last looked at all that waits; None before the first time.
    looked_at: datetime | None
    tree: Tree

    @property
    def place(self) -> int | None:
        """In its queue, from 1."""
        return None if self.ahead is None else self.ahead + 1

    @property
    def waits(self) -> bool:
        return self.claim.state == ClaimState.PENDING


def why_of(claim: Claim, *, user: accounts.Person) -> Why:
    """What that person may be told of the claim."""
    tree = queue_tree(user)
    line = tree.line(claim.queue)
    chips = [claim.chip] if claim.chip else list(claim.chips)
    ahead, waiting = _place(claim) if claim.state == ClaimState.PENDING else (None, 0)
    looked = LoopState.objects.filter(name=CYCLE).values_list("succeeded_at", flat=True).first()
    return Why(
        claim=claim,
        named=tree.sight.names(claim),
        line=line,
        shares=_shares(line, chips),
        free={chip: tree.stock[chip].free for chip in chips if chip in tree.stock},
        ahead=ahead,
        waiting=waiting,
        outlook=outlook_of(claim, sight=tree.sight) if ahead is not None else None,
        looked_at=looked,
        tree=tree,
    )


def _shares(line: Line, chips: list[str]) -> tuple[Share, ...]:
    shares = [line.share(chip) for chip in chips]
    if any(share.chip == TOTAL for share in line.shares):
        shares.append(line.share(TOTAL))
    return tuple(shares)


def _place(claim: Claim) -> tuple[int, int]:
    """How many of its queue come before it, and how many wait there in all."""
    since = claim.in_line_since or claim.created_at
    older = Q(since__lt=since) | Q(since=since, uid__lt=claim.uid)
    first = Q(priority__gt=claim.priority) | Q(priority=claim.priority) & older
    waiting = Claim.objects.filter(queue=claim.queue_id, state=ClaimState.PENDING)
    found = waiting.annotate(since=SINCE).aggregate(
        ahead=Count("pk", filter=first), waiting=Count("pk")
    )
    return found["ahead"], found["waiting"]
