"""Queues: the tree with quota, usage and pending claims; which accept claims, from whom; what a user sees of them.

Every user sees the tree with quota and usage. The page of a queue is visible to users who may submit to it, or to
a queue below it, and to queue admins of a queue above it. Names of workloads are visible to members of the team,
to those queue admins and to company administrators; other users see the team and the number of cards.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Sum

from apps.accounts import selectors as accounts
from apps.accounts.models import Team
from apps.fleet.models import Card
from apps.quotas.models import Allocation, Claim, PriorityClass, Queue
from apps.quotas.selectors.claim_snapshots import ALLOCATED_STATES
from apps.quotas.selectors.snapshots import allocated_cards_by_queue, queue_snapshot_of
from controlplane.domain.common.accelerators import CardState
from controlplane.domain.common.permissions import Permission, roles_grant
from controlplane.domain.common.reasons import Reason
from controlplane.domain.quotas.claims import ClaimState
from controlplane.domain.quotas.queues import TOTAL, QueueSnapshot, QueueState
from controlplane.domain.quotas.status import QueueStatus, chips_of_queue, queue_statuses


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueVisibility:
    """What one user sees; sets of primary keys."""

    #: True for company administrators.
    everything: bool
    teams: frozenset[int]
    #: Queues whose pages are visible.
    accessible: frozenset[int]
    #: Queues that the user manages, and those below.
    managed: frozenset[int]

    def can_open(self, queue_id: int) -> bool:
        return self.everything or queue_id in self.accessible

    def can_name(self, claim: Claim) -> bool:
        """Whether the user may see the name and the submitter of that workload."""
        return self.everything or claim.team_id in self.teams or claim.queue_id in self.managed


def queue_visibility_of(user: accounts.RequestUser, queues: Iterable[Queue]) -> QueueVisibility:
    """The visibility of that user.

    :param queues: all queues.
    """
    roles = accounts.roles_by_team(user)
    managing = {team for team, held in roles.items() if roles_grant(held, Permission.MANAGE_QUEUES)}
    by_key = {queue.pk: queue for queue in queues}
    usable, managed = set[int](), set[int]()
    for queue in by_key.values():
        above = list(_queue_and_ancestors(queue, by_key))
        if any(one.team_id in managing for one in above):
            managed.add(queue.pk)
        if queue.team_id is None or queue.team_id in roles:
            usable.update(one.pk for one in above)
    return QueueVisibility(
        everything=accounts.is_company_administrator(user),
        teams=frozenset(roles),
        accessible=frozenset(usable | managed),
        managed=frozenset(managed),
    )


def _queue_and_ancestors(queue: Queue, by_key: dict[int, Queue]) -> Iterable[Queue]:
    """The queue and its ancestors; in a cycle, each once."""
    seen: set[int] = set()
    above: Queue | None = queue
    while above is not None and above.pk not in seen:
        seen.add(above.pk)
        yield above
        above = by_key.get(above.parent_id) if above.parent_id else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChipCapacity:
    """Cards of the fleet of one chip, or of all chips."""

    total: int = 0
    #: Usable, on a schedulable node, and not allocated.
    free: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueChipUsage:
    """Quota and usage of a queue for one chip, or for all chips together."""

    #: ``TOTAL`` for all together.
    chip: str
    standing: QueueStatus
    #: Whether borrowing is defined here: with a guarantee for one chip only, or for all chips only, it is there.
    borrowing_known: bool = True

    @property
    def borrowed(self) -> int:
        return self.standing.borrowed if self.borrowing_known else 0

    @property
    def own(self) -> int:
        return self.standing.used - self.borrowed


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueEntry:
    """A queue in the tree, with its quota and usage."""

    queue: Queue
    shares: tuple[QueueChipUsage, ...]
    #: Pending claims here and below, and their cards.
    waiting: int
    waiting_cards: int
    #: Whether the reader may open its page.
    can_open: bool
    below: list[QueueEntry] = field(default_factory=list)

    def share(self, chip: str) -> QueueChipUsage:
        """Quota and usage for that chip, or for all chips."""
        found = next((share for share in self.shares if share.chip == chip), None)
        return found or QueueChipUsage(chip=chip, standing=QueueStatus())

    @property
    def subtree_ids(self) -> list[int]:
        """Primary keys of the queue and of those below."""
        return [entry.queue.pk for entry in flatten_queue_entries([self])]


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaTree:
    """All queues as a reader sees them, by name from the top down."""

    roots: tuple[QueueEntry, ...]
    #: By chip, and ``TOTAL``.
    capacity: Mapping[str, ChipCapacity]
    #: Cards at full width of a bar, by chip and ``TOTAL``: those of the fleet, so that bars are comparable, or
    #: more if the guarantee or usage of a queue exceeds the fleet.
    scales: Mapping[str, int]
    chips: tuple[str, ...]
    visibility: QueueVisibility

    def entry(self, queue: Queue) -> QueueEntry:
        """The entry of a queue; an empty one for a retired queue."""
        for entry in flatten_queue_entries(self.roots):
            if entry.queue.pk == queue.pk:
                return entry
        return QueueEntry(queue=queue, shares=(), waiting=0, waiting_cards=0, can_open=False)


def flatten_queue_entries(entries: Iterable[QueueEntry]) -> Iterator[QueueEntry]:
    """Those entries and all below, from the top down."""
    for entry in entries:
        yield entry
        yield from flatten_queue_entries(entry.below)


def queues_active() -> list[Queue]:
    """All queues that are not retired, by name."""
    return list(
        Queue.objects.filter(retired_at=None)
        .select_related("team", "parent")
        .prefetch_related("entitlements")
        .order_by("name")
    )


def queue_tree(user: accounts.RequestUser) -> QuotaTree:
    """The tree as that user sees it."""
    queues = queues_active()
    visibility = queue_visibility_of(user, queues)
    views, capacity = queue_snapshots_with_usage(queues), capacity_by_chip()
    by_chip = {
        chip: queue_statuses(views, chip=chip, capacity=capacity.get(chip, ChipCapacity()).total)
        for chip in (*chips_of_queue(views), TOTAL)
    }
    waiting = _pending_counts()
    children: dict[int | None, list[Queue]] = defaultdict(list)
    known = {queue.pk for queue in queues}
    for queue in queues:
        children[queue.parent_id if queue.parent_id in known else None].append(queue)

    def build(queue: Queue) -> QueueEntry:
        below = [build(child) for child in children[queue.pk]]
        claims, cards = waiting.get(queue.pk, (0, 0))
        return QueueEntry(
            queue=queue,
            shares=_queue_usage_by_chip(views, queue, by_chip),
            waiting=claims + sum(entry.waiting for entry in below),
            waiting_cards=cards + sum(entry.waiting_cards for entry in below),
            can_open=visibility.can_open(queue.pk),
            below=below,
        )

    return QuotaTree(
        roots=tuple(build(queue) for queue in children[None]),
        capacity=capacity,
        scales={
            chip: max(
                1,
                capacity.get(chip, ChipCapacity()).total,
                *(max(one.guaranteed, one.used) for one in found.values()),
            )
            for chip, found in by_chip.items()
        },
        chips=tuple(sorted({*chips_of_queue(views), *capacity} - {TOTAL})),
        visibility=visibility,
    )


def queue_snapshots_with_usage(queues: Sequence[Queue]) -> Mapping[str, QueueSnapshot]:
    """Scheduler views of the queues by uid, with their current usage."""
    used = allocated_cards_by_queue()
    return {queue.uid: queue_snapshot_of(queue, used.get(queue.uid, {})) for queue in queues}


def capacity_by_chip() -> Mapping[str, ChipCapacity]:
    """Capacity of the fleet by chip and in total."""
    allocated = Allocation.objects.filter(card=OuterRef("pk"), released_at=None)
    usable = Q(~Exists(allocated), state=CardState.USABLE, node__ready=True, node__cordoned=False)
    rows = (
        Card.objects.order_by()
        .values_list("chip")
        .annotate(total=Count("id"), free=Count("id", filter=usable))
    )
    capacity = {chip: ChipCapacity(total=total, free=free) for chip, total, free in rows}
    every = ChipCapacity(
        total=sum(one.total for one in capacity.values()),
        free=sum(one.free for one in capacity.values()),
    )
    return {**capacity, TOTAL: every}


def _pending_counts() -> Mapping[int, tuple[int, int]]:
    """Pending claims and their cards by queue."""
    rows = (
        Claim.objects.filter(state=ClaimState.PENDING)
        .order_by()
        .values_list("queue_id")
        .annotate(claims=Count("id"), cards=Sum("card_count"))
    )
    return {queue: (claims, cards) for queue, claims, cards in rows}


def _queue_usage_by_chip(
    views: Mapping[str, QueueSnapshot],
    queue: Queue,
    by_chip: Mapping[str, Mapping[str, QueueStatus]],
) -> tuple[QueueChipUsage, ...]:
    """Chips with quota or usage; all chips together only if there is such a quota."""
    nothing = QueueStatus()
    total = by_chip[TOTAL][queue.uid]
    shares = [
        QueueChipUsage(
            chip=chip,
            standing=standing,
            borrowing_known=standing.guaranteed > 0 or not total.guaranteed,
        )
        for chip, found in by_chip.items()
        if (standing := found[queue.uid]) != nothing and chip != TOTAL
    ]
    stated = views[queue.uid].total
    if total.guaranteed or stated.cap is not None:
        shares.append(
            QueueChipUsage(chip=TOTAL, standing=total, borrowing_known=total.guaranteed > 0)
        )
    return tuple(shares)


class _QueueState(NamedTuple):
    pk: int
    name: str
    parent: int | None
    state: str


def queue_closed_reason(queue: Queue) -> str:
    """Why the queue, or one above it, does not accept new claims; empty if it does."""
    return any_queue_closed_reason((queue,))


def any_queue_closed_reason(queues: Iterable[Queue]) -> str:
    """Why one of the queues, or one above it, does not accept new claims; empty if all do."""
    active = Queue.objects.filter(retired_at=None).values_list("pk", "name", "parent", "state")
    rows = {row.pk: row for row in map(_QueueState._make, active)}
    above = {row.parent for row in rows.values()}
    reasons = (_queue_closed_reason(queue, rows, above) for queue in queues)
    return next(filter(None, reasons), "")


def _queue_closed_reason(
    queue: Queue, rows: Mapping[int, _QueueState], with_others_below: Collection[int | None]
) -> str:
    if queue.pk not in rows:
        return Reason(
            "queue.selection.retired",
            "queue {queue} no longer exists; choose another",
            queue=queue.name,
        )
    if queue.pk in with_others_below:
        return Reason(
            "queue.selection.not_a_leaf",
            "queue {queue} has child queues; choose one of those",
            queue=queue.name,
        )
    seen: set[int] = set()
    above: int | None = queue.pk
    while above is not None and above in rows and above not in seen:
        seen.add(above)
        row = rows[above]
        if row.state == QueueState.DRAINING:
            return Reason(
                "queue.selection.draining",
                "queue {queue} is draining and accepts no new claims; choose another",
                queue=row.name,
            )
        if row.state == QueueState.CLOSED:
            return Reason(
                "queue.selection.closed",
                "queue {queue} is closed and accepts no new claims; choose another",
                queue=row.name,
            )
        above = row.parent
    return ""


def queues_for_team(team: Team) -> QuerySet[Queue]:
    """Queues that the team may submit to."""
    below = Queue.objects.filter(parent=OuterRef("pk"), retired_at=None)
    return Queue.objects.filter(~Exists(below), Q(team=None) | Q(team=team), retired_at=None)


def queues_visible(user: accounts.RequestUser) -> QuerySet[Queue]:
    """Queues that the user's teams may submit to, with the number of pending and running claims."""
    return (
        Queue.objects.filter(
            Q(team=None) | Q(team__in=accounts.teams_visible(user)), retired_at=None
        )
        .select_related("team", "parent")
        .prefetch_related("entitlements")
        .annotate(
            waiting=Count("claims", filter=Q(claims__state=ClaimState.PENDING)),
            running=Count("claims", filter=Q(claims__state__in=ALLOCATED_STATES)),
        )
    )


def priority_classes() -> list[PriorityClass]:
    """Priority classes, highest first."""
    return list(PriorityClass.objects.order_by("-value"))


def priority_class_of_value(value: int) -> PriorityClass | None:
    return PriorityClass.objects.filter(value=value).first()


def default_queue_of_team(team: Team) -> Queue | None:
    """The team's default queue: its own open queue before those for every team."""
    return (
        queues_for_team(team)
        .filter(state=QueueState.OPEN)
        .order_by(F("team").asc(nulls_last=True), "id")
        .first()
    )
