"""The queue tree as documents, what it is validated against, and the history of its changes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from django.db.models import Count, Q, QuerySet

from apps.accounts import selectors as accounts
from apps.accounts.models import Team
from apps.fleet.models import Card
from apps.quotas.models import Claim, Queue, QueueChange
from apps.quotas.selectors.claim_snapshots import ALLOCATED_STATES
from apps.quotas.selectors.queues import capacity_by_chip, queue_snapshots_with_usage, queues_active
from apps.quotas.selectors.snapshots import allocated_cards_by_queue
from controlplane.domain.common.permissions import Permission
from controlplane.domain.quotas.claims import ClaimState
from controlplane.domain.quotas.permissions import QueuePermissions
from controlplane.domain.quotas.queue_documents import (
    PLAIN_FIELDS,
    Documents,
    QueueDifference,
    QueueDocument,
    RetiredQueue,
    queue_document_from_json,
    queue_tree_fingerprint,
    tree_differences,
)
from controlplane.domain.quotas.queues import TOTAL
from controlplane.domain.quotas.status import QueueStatus, chips_of_queue, queue_statuses
from controlplane.domain.quotas.validation import QueueTreeContext
from controlplane.ports import adapter_registry


def queue_tree_documents() -> Documents:
    """All queues that are not retired, by uid."""
    queues = (
        Queue.objects.filter(retired_at=None)
        .select_related("parent", "team")
        .prefetch_related("entitlements")
        .order_by("id")
    )
    return {queue.uid: queue_document(queue) for queue in queues}


def queue_documents_visible(user: accounts.RequestUser) -> Documents:
    """Documents of queues for every team or for one of the user's teams."""
    slugs = {"", *accounts.teams_visible(user).values_list("slug", flat=True)}
    return {uid: one for uid, one in queue_tree_documents().items() if one.team in slugs}


def queue_names() -> dict[str, str]:
    """Names of all queues by uid, retired ones included."""
    return dict(Queue.objects.values_list("uid", "name"))


def queue_statuses_by_queue() -> Mapping[str, Sequence[tuple[str, QueueStatus]]]:
    """Quota and usage of each queue by uid: for each chip with quota or usage, and for all chips."""
    views, capacities = queue_snapshots_with_usage(queues_active()), capacity_by_chip()
    found: dict[str, list[tuple[str, QueueStatus]]] = {uid: [] for uid in views}
    for chip in (*chips_of_queue(views), TOTAL):
        capacity = capacities[chip].total if chip in capacities else 0
        for uid, standing in queue_statuses(views, chip=chip, capacity=capacity).items():
            if standing != QueueStatus():
                found[uid].append((chip, standing))
    return found


def current_tree_fingerprint() -> str:
    """A fingerprint that changes with any change of the tree."""
    return queue_tree_fingerprint(queue_tree_documents())


def queue_document(queue: Queue) -> QueueDocument:
    return QueueDocument(
        uid=queue.uid,
        **{name: each.from_json(getattr(queue, name)) for name, each in PLAIN_FIELDS.items()},
        parent=queue.parent.uid if queue.parent else "",
        team=queue.team.slug if queue.team else "",
        entitlements={
            one.chip: one.quota
            for one in queue.entitlements.all()
            if one.guaranteed or one.cap is not None
        },
    )


def queue_tree_context() -> QueueTreeContext:
    """The current state that trees are validated against."""
    counts = (
        Claim.objects.exclude(state=ClaimState.RELEASED)
        .order_by()
        .values_list("queue__uid")
        .annotate(
            waiting=Count("id", filter=Q(state=ClaimState.PENDING)),
            holding=Count("id", filter=Q(state__in=ALLOCATED_STATES)),
        )
    )
    rows = list(counts)
    return QueueTreeContext(
        teams=frozenset(Team.objects.values_list("slug", flat=True)),
        chips=frozenset(adapter_registry.all_chips()),
        cards=dict(Card.objects.order_by().values_list("chip").annotate(Count("id"))),
        waiting={queue: waiting for queue, waiting, _ in rows if waiting},
        holding={queue: holding for queue, _, holding in rows if holding},
        used=allocated_cards_by_queue(),
        retired=retired_queues(),
    )


def retired_queues() -> dict[str, RetiredQueue]:
    """Retired queues by name."""
    rows = Queue.objects.exclude(retired_at=None).values_list("name", "uid", "team__slug")
    return {name: RetiredQueue(uid=uid, team=team or "") for name, uid, team in rows}


def queue_tree_permissions(user: accounts.RequestUser) -> QueuePermissions:
    """What the user may change in the tree."""
    if accounts.is_company_administrator(user):
        return QueuePermissions(everything=True)
    teams = accounts.teams_with_permission(user, Permission.MANAGE_QUEUES)
    return QueuePermissions(teams=frozenset(teams.values_list("slug", flat=True)))


def queue_changes_visible(user: accounts.RequestUser) -> QuerySet[QueueChange]:
    """Changes of the tree, newest first: all for company administrators, for others those that affect a queue of
    a team in which they manage queues."""
    changes = QueueChange.objects.select_related("reverts").order_by("-id")
    if accounts.is_company_administrator(user):
        return changes
    teams = accounts.teams_with_permission(user, Permission.MANAGE_QUEUES)
    managed = list(Queue.objects.filter(team__in=teams).values_list("uid", flat=True))
    return changes.filter(Q(before__has_any_keys=managed) | Q(after__has_any_keys=managed))


def visible_change_documents(
    documents: Mapping[str, dict[str, Any] | None], *, teams: Collection[str] | None = None
) -> dict[str, QueueDocument | None]:
    """One side of a change, without the queues of other teams.

    :param teams: slugs of the teams whose queues are shown; None for all.
    """
    shown = {uid: queue_document_from_json(one) if one else None for uid, one in documents.items()}
    return {
        uid: document
        for uid, document in shown.items()
        if document is None or not document.team or teams is None or document.team in teams
    }


def visible_change_differences(
    change: QueueChange, *, names: Mapping[str, str], teams: Collection[str] | None = None
) -> tuple[QueueDifference, ...]:
    """The differences of a change, without those of queues of other teams.

    :param names: of all queues by uid.
    :param teams: slugs of the teams whose queues are shown; None for all.
    """
    before, after = (
        {
            uid: document
            for uid, document in visible_change_documents(side, teams=teams).items()
            if document
        }
        for side in (change.before, change.after)
    )
    return tree_differences(before, after, names=names)
