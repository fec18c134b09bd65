"""The queue tree as people look at it: who is owed what, who has it, how much waits."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from django.db.models import Count, Exists, OuterRef, Q, Sum

from apps.accounts import selectors as accounts
from apps.fleet.models import Card
from apps.quotas.models import Allocation, Claim, Queue
from apps.quotas.selectors.queue_rows import queue_view
from apps.quotas.selectors.sights import Sight, sight_of
from controlplane.domain.accelerators import CardState
from controlplane.domain.claims import ClaimState
from controlplane.domain.queue_standings import Standing, chips_of, standings
from controlplane.domain.quotas import TOTAL
from controlplane.domain.scheduling.snapshots import QueueView


@dataclass(frozen=True, slots=True, kw_only=True)
class Stock:
    """Cards of one chip, or of all."""

    total: int = 0
    #: Sound, on a node that takes work, and held by nobody.
    free: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """What a queue has of one chip, or of all together."""

    #: ``TOTAL`` for all together.
    chip: str
    standing: Standing
    #: Whether it can be said here what it borrows: where a guarantee is stated for one chip only, or for all
    #: together only, it is said there.
    judged: bool = True

    @property
    def borrowed(self) -> int:
        return self.standing.borrowed if self.judged else 0

    @property
    def own(self) -> int:
        return self.standing.used - self.borrowed


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A queue in the tree."""

    queue: Queue
    shares: tuple[Share, ...]
    #: Claims that wait here and below, and the cards that they ask for.
    waiting: int
    waiting_cards: int
    #: Whether its page opens to whoever looks.
    opened: bool
    below: list[Line] = field(default_factory=list)

    def share(self, chip: str) -> Share:
        """What it has of that chip, or of all together."""
        found = next((share for share in self.shares if share.chip == chip), None)
        return found or Share(chip=chip, standing=Standing())

    @property
    def keys(self) -> list[int]:
        """Primary keys of the queue and of those below."""
        return [line.queue.pk for line in flat([self])]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """All queues, by name from the top down."""

    tops: tuple[Line, ...]
    #: By chip, and ``TOTAL``.
    stock: Mapping[str, Stock]
    #: Cards that a whole bar stands for, by chip and ``TOTAL``: those of the fleet, so that bars compare, or
    #: more, where a queue is guaranteed or holds more than the fleet has.
    scales: Mapping[str, int]
    chips: tuple[str, ...]
    sight: Sight

    def line(self, queue: Queue) -> Line:
        """Of a queue that was retired, one that states and holds nothing."""
        for line in flat(self.tops):
            if line.queue.pk == queue.pk:
                return line
        return Line(queue=queue, shares=(), waiting=0, waiting_cards=0, opened=False)


def flat(lines: Iterable[Line]) -> Iterator[Line]:
    """Those lines and all below, from the top down."""
    for line in lines:
        yield line
        yield from flat(line.below)


def queues_alive() -> list[Queue]:
    """All queues that are not retired, by name."""
    return list(
        Queue.objects.filter(retired_at=None)
        .select_related("team", "parent")
        .prefetch_related("entitlements")
        .order_by("name")
    )


def queue_tree(user: accounts.Person) -> Tree:
    """The tree as that person sees it."""
    queues = queues_alive()
    sight = sight_of(user, queues)
    views, stock = queue_views(queues), stock_by_chip()
    by_chip = {
        chip: standings(views, chip=chip, capacity=stock.get(chip, Stock()).total)
        for chip in (*chips_of(views), TOTAL)
    }
    waiting = _waiting()
    children: dict[int | None, list[Queue]] = defaultdict(list)
    known = {queue.pk for queue in queues}
    for queue in queues:
        children[queue.parent_id if queue.parent_id in known else None].append(queue)

    def grown(queue: Queue) -> Line:
        below = [grown(child) for child in children[queue.pk]]
        claims, cards = waiting.get(queue.pk, (0, 0))
        return Line(
            queue=queue,
            shares=_shares(views, queue, by_chip),
            waiting=claims + sum(line.waiting for line in below),
            waiting_cards=cards + sum(line.waiting_cards for line in below),
            opened=sight.opens(queue.pk),
            below=below,
        )

    return Tree(
        tops=tuple(grown(queue) for queue in children[None]),
        stock=stock,
        scales={
            chip: max(
                1,
                stock.get(chip, Stock()).total,
                *(max(one.guaranteed, one.used) for one in found.values()),
            )
            for chip, found in by_chip.items()
        },
        chips=tuple(sorted({*chips_of(views), *stock} - {TOTAL})),
        sight=sight,
    )


def queue_views(queues: Sequence[Queue]) -> Mapping[str, QueueView]:
    """As the scheduler sees them, by uid, with what their claims hold now."""
    used: dict[int, Counter[str]] = defaultdict(Counter)
    rows = (
        Allocation.objects.filter(released_at=None)
        .order_by()
        .values_list("claim__queue_id", "claim__chip")
        .annotate(held=Count("id"))
    )
    for queue, chip, held in rows:
        used[queue][chip] += held
    return {queue.uid: queue_view(queue, used[queue.pk]) for queue in queues}


def stock_by_chip() -> Mapping[str, Stock]:
    """What the fleet has, by chip and in all."""
    held = Allocation.objects.filter(card=OuterRef("pk"), released_at=None)
    usable = Q(~Exists(held), state=CardState.USABLE, node__ready=True, node__cordoned=False)
    rows = (
        Card.objects.order_by()
        .values_list("chip")
        .annotate(total=Count("id"), free=Count("id", filter=usable))
    )
    stock = {chip: Stock(total=total, free=free) for chip, total, free in rows}
    every = Stock(
        total=sum(one.total for one in stock.values()),
        free=sum(one.free for one in stock.values()),
    )
    return {**stock, TOTAL: every}


def _waiting() -> Mapping[int, tuple[int, int]]:
    """Claims that wait and the cards that they ask for, by queue."""
    rows = (
        Claim.objects.filter(state=ClaimState.PENDING)
        .order_by()
        .values_list("queue_id")
        .annotate(claims=Count("id"), cards=Sum("card_count"))
    )
    return {queue: (claims, cards) for queue, claims, cards in rows}


def _shares(
    views: Mapping[str, QueueView],
    queue: Queue,
    by_chip: Mapping[str, Mapping[str, Standing]],
) -> tuple[Share, ...]:
    """What it states something for, or holds; all chips together only where it states something for them."""
    nothing = Standing()
    total = by_chip[TOTAL][queue.uid]
    shares = [
        Share(
            chip=chip,
            standing=standing,
            judged=standing.guaranteed > 0 or not total.guaranteed,
        )
        for chip, found in by_chip.items()
        if (standing := found[queue.uid]) != nothing and chip != TOTAL
    ]
    stated = views[queue.uid].total
    if total.guaranteed or stated.cap is not None:
        shares.append(Share(chip=TOTAL, standing=total, judged=total.guaranteed > 0))
    return tuple(shares)
