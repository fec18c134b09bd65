"""Questions about queues and claims; the snapshot for the scheduler."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet
from django.db.models.functions import Coalesce

from apps.accounts import selectors as accounts
from apps.accounts.models import Team
from apps.fleet.models import Card, Cluster, Node
from apps.quotas.models import Allocation, Claim, PriorityClass, Queue
from apps.quotas.selectors.intakes import intake_refusal
from apps.quotas.selectors.snapshots import HOLDING, snapshot, snapshot_and_reasons
from controlplane.domain.accelerators import CardState
from controlplane.domain.claims import ClaimState
from controlplane.domain.queues import QueueState
from controlplane.ports.launches import Placement

__all__ = [
    "Place",
    "cards_free",
    "cards_held",
    "claim_of",
    "claims_visible",
    "cluster_of",
    "in_line_since_each",
    "intake_refusal",
    "launch_labels",
    "place_of",
    "placements_of",
    "priority_classes",
    "queue_default",
    "queues_for",
    "queues_visible",
    "snapshot",
    "snapshot_and_reasons",
]


def queues_for(team: Team) -> QuerySet[Queue]:
    """Queues that the team may submit to."""
    below = Queue.objects.filter(parent=OuterRef("pk"), retired_at=None)
    return Queue.objects.filter(~Exists(below), Q(team=None) | Q(team=team), retired_at=None)


def queues_visible(user: accounts.Person) -> QuerySet[Queue]:
    """Queues that one of their teams may submit to, with what waits and runs in each."""
    return (
        Queue.objects.filter(Q(team=None) | Q(team__in=accounts.teams_of(user)), retired_at=None)
        .select_related("team", "parent")
        .prefetch_related("entitlements")
        .annotate(
            waiting=Count("claims", filter=Q(claims__state=ClaimState.PENDING)),
            running=Count("claims", filter=Q(claims__state__in=HOLDING)),
        )
    )


def priority_classes() -> list[PriorityClass]:
    """Names for priorities, the most urgent first."""
    return list(PriorityClass.objects.order_by("-value"))


def claims_visible(user: accounts.Person) -> QuerySet[Claim]:
    return Claim.objects.filter(team__in=accounts.teams_of(user)).select_related("team", "queue")


def queue_default(team: Team) -> Queue | None:
    """Where the team's work goes if nobody says: its own open queue before those for everybody."""
    return (
        queues_for(team)
        .filter(state=QueueState.OPEN)
        .order_by(F("team").asc(nulls_last=True), "id")
        .first()
    )


def claim_of(*, kind: str, uid: str) -> Claim | None:
    """The newest claim of that owner."""
    return Claim.objects.filter(owner_kind=kind, owner_uid=uid).order_by("-id").first()


def in_line_since_each(uids: Collection[str]) -> dict[str, datetime]:
    """Since when each of the claims is in line, or was until it got its cards, by uid."""
    claims = Claim.objects.only("uid", "in_line_since", "created_at").filter(uid__in=uids)
    return {claim.uid: claim.in_line_since or claim.created_at for claim in claims}


def cluster_of(claim: Claim) -> Cluster:
    """Where an admitted claim's gang runs."""
    node = Node.objects.select_related("cluster").get(uid=claim.placement[0]["node"])
    return node.cluster


def placements_of(claim: Claim) -> tuple[Placement, ...]:
    """Where the replicas of an admitted claim of one role go, in order of their index."""
    names = dict(
        Node.objects.filter(uid__in=[one["node"] for one in claim.placement]).values_list(
            "uid", "name"
        )
    )
    return tuple(
        Placement(node=names[one["node"]], cards=tuple(one["cards"]))
        for one in sorted(claim.placement, key=lambda one: int(one["index"]))
    )


def launch_labels(claim: Claim) -> dict[str, str]:
    """How the claim's Launch tells a cluster that schedules by itself where it stands: see ``Launch.labels``."""
    labels = {"queue": claim.queue.uid, "priority": str(claim.priority)}
    if within := claim.where.get("within"):
        labels["within"] = within
    return labels


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where work stands, or would stand, in the order of its queue."""

    #: Claims of the queue that the scheduler takes first.
    ahead: int
    #: Usable cards of the chips that nobody holds now.
    free_cards: int
    #: Cards of the chips in all, whether or not they can be used.
    cards: int


def place_of(*, queue: Queue, chips: Collection[str], claim: Claim | None = None) -> Place:
    """The place of a waiting claim; without one, that of a claim of priority 0 made now."""
    waiting = Claim.objects.filter(queue=queue, state=ClaimState.PENDING)
    if claim is None:
        before = waiting.filter(priority__gte=0)
    else:
        # The order in which the scheduler takes them: priority, then age.
        waiting = waiting.annotate(since=Coalesce("in_line_since", "created_at"))
        since = claim.in_line_since or claim.created_at
        older = Q(since__lt=since) | Q(since=since, uid__lt=claim.uid)
        before = waiting.filter(Q(priority__gt=claim.priority) | Q(priority=claim.priority) & older)
    held = Allocation.objects.filter(released_at=None).values("card")
    usable = Q(state=CardState.USABLE, node__ready=True, node__cordoned=False)
    cards = Card.objects.filter(chip__in=chips).aggregate(
        every=Count("id"), free=Count("id", filter=usable & ~Q(id__in=held))
    )
    return Place(ahead=before.count(), free_cards=cards["free"], cards=cards["every"])


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamUsage:
    """What one team runs at a place."""

    team: str
    workloads: int
    cards: int


def usage_by_team(node: Node, *, card: Card | None = None) -> list[TeamUsage]:
    """Who runs on the node, or only on that card of it and its slices; by the name of the team."""
    rows = Allocation.objects.filter(node=node, released_at=None)
    if card is not None:
        rows = rows.filter(Q(card=card) | Q(card__parent=card))
    counted = rows.values("claim__team__name").annotate(
        workloads=Count("claim", distinct=True), cards=Count("id")
    )
    return [
        TeamUsage(team=row["claim__team__name"], workloads=row["workloads"], cards=row["cards"])
        for row in counted.order_by("claim__team__name")
    ]


def cards_free() -> dict[str, int]:
    """Usable cards that nobody holds now, by chip; 0 for a chip that the fleet has no such card of."""
    held = Allocation.objects.filter(released_at=None).values("card")
    usable = Q(state=CardState.USABLE, node__ready=True, node__cordoned=False)
    rows = Card.objects.values_list("chip").annotate(
        free=Count("id", filter=usable & ~Q(id__in=held))
    )
    return dict(rows)


def cards_held(queue: Queue) -> dict[str, int]:
    """Cards that the queue's claims hold now, by chip."""
    rows = (
        Allocation.objects.filter(claim__queue=queue, released_at=None)
        .order_by()
        .values_list("card__chip")
        .annotate(held=Count("id"))
    )
    return dict(rows)
