"""Claims: pending ones in scheduling order, running ones, and the explanation of one claim for a reader."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import cast

from django.db.models import (
    CharField,
    Count,
    F,
    Func,
    Q,
    QuerySet,
    TextField,
    Value,
)
from django.db.models.functions import Cast, Coalesce, Concat, LPad

from apps.accounts import selectors as accounts
from apps.fleet.models import Cluster, Node
from apps.quotas.models import Claim, Queue
from apps.quotas.selectors.claim_snapshots import ALLOCATED_STATES
from apps.quotas.selectors.forecasts import VisibleForecast, visible_forecast
from apps.quotas.selectors.queues import (
    QueueChipUsage,
    QueueEntry,
    QueueVisibility,
    QuotaTree,
    capacity_by_chip,
    queue_tree,
    queue_visibility_of,
    queues_active,
)
from controlplane.domain.quotas.claims import ClaimState
from controlplane.domain.quotas.queues import TOTAL
from controlplane.persistence.models import ControllerState
from controlplane.ports.launches import LaunchPlacement

#: Queueing time of a claim: one that resumes an evicted workload keeps the time of its predecessor.
PENDING_SINCE = Coalesce("in_line_since", "created_at")
#: Order within a queue, as in ``controlplane.domain.scheduling.pending_queues``: priority, age, uid.
QUEUE_ORDER = (F("priority").desc(), PENDING_SINCE.asc(), F("uid").asc())
#: Larger than any priority.
_ABOVE_ANY_PRIORITY = 2**31


def claims_readable(user: accounts.RequestUser) -> tuple[QuerySet[Claim], QueueVisibility]:
    """Claims that the user may see in full, and the user's visibility for the others."""
    visibility = queue_visibility_of(user, queues_active())
    claims = Claim.objects.select_related("team", "queue", "user")
    if not visibility.everything:
        claims = claims.filter(queue_id__in=visibility.managed) | claims.filter(
            team_id__in=visibility.teams
        )
    return claims, visibility


def claims_pending(queues: Collection[int]) -> QuerySet[Claim]:
    """Pending claims of these queues, with ``line``: a text that sorts in scheduling order."""
    return (
        Claim.objects.filter(state=ClaimState.PENDING, queue_id__in=queues)
        .select_related("team", "queue", "user", "forecast")
        .annotate(since=PENDING_SINCE, line=_scheduling_order_key())
    )


def claims_allocated(queues: Collection[int]) -> QuerySet[Claim]:
    return Claim.objects.filter(state__in=ALLOCATED_STATES, queue_id__in=queues).select_related(
        "team", "queue", "user"
    )


def _scheduling_order_key() -> Concat:
    urgency = LPad(Cast(Value(_ABOVE_ANY_PRIORITY) - F("priority"), TextField()), 10, Value("0"))
    age = Func(
        PENDING_SINCE, Value("YYYYMMDDHH24MISSUS"), function="to_char", output_field=CharField()
    )
    return Concat(urgency, age, F("uid"), output_field=CharField())


def queue_positions(queues: Collection[int]) -> Mapping[int, int]:
    """Position of each pending claim in its queue, from 1, by primary key."""
    rows = (
        Claim.objects.filter(state=ClaimState.PENDING, queue_id__in=queues)
        .order_by(*QUEUE_ORDER)
        .values_list("pk", "queue_id")
    )
    reached: Counter[int] = Counter()
    places: dict[int, int] = {}
    for claim, queue in rows:
        reached[queue] += 1
        places[claim] = reached[queue]
    return places


def borrowing_claim_ids(
    queues: Collection[int], rights: Mapping[tuple[int, str], int]
) -> frozenset[int]:
    """Primary keys of the claims that use cards beyond the guarantee of their queue.

    Claims with higher priority and older ones count towards the guarantee first: the others are preempted first.

    :param rights: guaranteed cards by queue primary key and chip; absent means none.
    """
    rows = (
        Claim.objects.filter(state__in=ALLOCATED_STATES, queue_id__in=queues)
        .order_by("-priority", "admitted_at", "pk")
        .values_list("pk", "queue_id", "chip", "card_count")
    )
    allocated: dict[tuple[int, str], int] = defaultdict(int)
    beyond = set()
    for claim, queue, chip, cards in rows:
        allocated[queue, chip] += cards
        if allocated[queue, chip] > rights.get((queue, chip), 0):
            beyond.add(claim)
    return frozenset(beyond)


def claim_node_names(claims: Iterable[Claim]) -> Mapping[str, str]:
    """Names of the nodes on which these claims are placed, by uid."""
    uids = {cast(str, part["node"]) for claim in claims for part in claim.placement}
    return dict(Node.objects.filter(uid__in=uids).values_list("uid", "name"))


def latest_claim_of_work(claim: Claim) -> Claim:
    """The newest active claim of the same workload; of an evicted one, the claim that is pending again."""
    if not claim.work_uid or claim.state != ClaimState.RELEASED:
        return claim
    newest = (
        Claim.objects.filter(work_kind=claim.work_kind, work_uid=claim.work_uid)
        .select_related("team", "queue", "user")
        .latest("id")
    )
    # A deployment has many claims; only an active one is its continuation.
    return newest if newest.state != ClaimState.RELEASED else claim


#: Name of the scheduler's task.
CYCLE_TASK = "apps.quotas.tasks.run_cycle"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimExplanation:
    """Why a claim is pending or was placed there, as far as a reader may see it."""

    claim: Claim
    #: Whether the reader may see the name of the workload.
    named: bool
    entry: QueueEntry
    #: Quota and usage of its queue for each acceptable or allocated chip; for all chips if there is such a quota.
    shares: tuple[QueueChipUsage, ...]
    #: Free cards of the fleet by chip.
    free: Mapping[str, int]
    #: Pending claims of its queue before it, None if it is not pending; and all pending claims of the queue.
    ahead: int | None
    waiting: int
    outlook: VisibleForecast | None
    #: Last successful scheduling cycle; None before the first.
    looked_at: datetime | None
    tree: QuotaTree

    @property
    def place(self) -> int | None:
        """Position in its queue, from 1."""
        return None if self.ahead is None else self.ahead + 1

    @property
    def is_pending(self) -> bool:
        return self.claim.state == ClaimState.PENDING


def claim_explanation(claim: Claim, *, user: accounts.RequestUser) -> ClaimExplanation:
    tree = queue_tree(user)
    entry = tree.entry(claim.queue)
    chips = [claim.chip] if claim.chip else list(claim.chips)
    ahead, waiting = (
        _count_pending_claims_ahead(claim) if claim.state == ClaimState.PENDING else (None, 0)
    )
    looked = (
        ControllerState.objects.filter(name=CYCLE_TASK)
        .values_list("succeeded_at", flat=True)
        .first()
    )
    return ClaimExplanation(
        claim=claim,
        named=tree.visibility.can_name(claim),
        entry=entry,
        shares=_queue_usage_of_chips(entry, chips),
        free={chip: tree.capacity[chip].free for chip in chips if chip in tree.capacity},
        ahead=ahead,
        waiting=waiting,
        outlook=visible_forecast(claim, visibility=tree.visibility) if ahead is not None else None,
        looked_at=looked,
        tree=tree,
    )


def _queue_usage_of_chips(entry: QueueEntry, chips: list[str]) -> tuple[QueueChipUsage, ...]:
    shares = [entry.share(chip) for chip in chips]
    if any(share.chip == TOTAL for share in entry.shares):
        shares.append(entry.share(TOTAL))
    return tuple(shares)


def _count_pending_claims_ahead(claim: Claim) -> tuple[int, int]:
    """The number of pending claims before it in its queue, and in total."""
    waiting = Claim.objects.filter(queue=claim.queue_id, state=ClaimState.PENDING)
    found = waiting.annotate(since=PENDING_SINCE).aggregate(
        ahead=Count("pk", filter=_is_before(claim)), waiting=Count("pk")
    )
    return found["ahead"], found["waiting"]


def _is_before(claim: Claim) -> Q:
    """A filter for claims before it in its queue, whose rows have ``since``: by priority, then age."""
    since = claim.in_line_since or claim.created_at
    older = Q(since__lt=since) | Q(since=since, uid__lt=claim.uid)
    return Q(priority__gt=claim.priority) | Q(priority=claim.priority) & older


def claims_visible(user: accounts.RequestUser) -> QuerySet[Claim]:
    return Claim.objects.filter(team__in=accounts.teams_visible(user)).select_related(
        "team", "queue"
    )


def claim_of_workload(*, kind: str, uid: str) -> Claim | None:
    """The newest claim of that owner."""
    return Claim.objects.filter(owner_kind=kind, owner_uid=uid).order_by("-id").first()


def queued_since_by_claim(uids: Collection[str]) -> dict[str, datetime]:
    """Queueing time of each claim by uid."""
    claims = Claim.objects.only("uid", "in_line_since", "created_at").filter(uid__in=uids)
    return {claim.uid: claim.in_line_since or claim.created_at for claim in claims}


def cluster_of_claim(claim: Claim) -> Cluster:
    node = Node.objects.select_related("cluster").get(uid=claim.placement[0]["node"])
    return node.cluster


def placements_of_claim(claim: Claim) -> tuple[LaunchPlacement, ...]:
    """Placements of the replicas of an admitted single-role claim, in index order."""
    names = dict(
        Node.objects.filter(uid__in=[one["node"] for one in claim.placement]).values_list(
            "uid", "name"
        )
    )
    return tuple(
        LaunchPlacement(node=names[one["node"]], cards=tuple(one["cards"]))
        for one in sorted(claim.placement, key=lambda one: int(one["index"]))
    )


def launch_labels(claim: Claim) -> dict[str, str]:
    """Labels of the claim's launch for clusters with their own scheduler; see ``Launch.labels``."""
    labels = {"queue": claim.queue.uid, "priority": str(claim.priority)}
    if within := claim.where.get("within"):
        labels["within"] = within
    return labels


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuePosition:
    """Position of a workload, or of a hypothetical one, in its queue."""

    #: Pending claims of the queue before it.
    ahead: int
    #: Free usable cards of the chips.
    free_cards: int
    #: All cards of the chips, usable or not.
    cards: int


def queue_position(
    *, queue: Queue, chips: Collection[str], claim: Claim | None = None
) -> QueuePosition:
    """Position of a pending claim; without a claim, that of a new one with priority 0."""
    waiting = Claim.objects.filter(queue=queue, state=ClaimState.PENDING)
    before = Q(priority__gte=0) if claim is None else _is_before(claim)
    ahead = waiting.annotate(since=PENDING_SINCE).filter(before).count()
    capacity = capacity_by_chip()
    cards = [capacity[chip] for chip in set(chips) & capacity.keys()]
    return QueuePosition(
        ahead=ahead,
        free_cards=sum(each.free for each in cards),
        cards=sum(each.total for each in cards),
    )
