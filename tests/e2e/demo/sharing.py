"""The tree of queues as an administrator made it of the first ones, with the history that this left."""

from __future__ import annotations

from dataclasses import replace

from django.utils import timezone

from apps.quotas.models import QueueChange
from apps.quotas.selectors.queue_trees import queue_tree_documents
from apps.quotas.services.queue_trees import queue_tree_apply
from controlplane.domain.quotas.queue_documents import QueueDocument, TreeAction, TreeEdit
from controlplane.domain.quotas.queues import TOTAL, ChipQuota, QueueState
from tests.e2e.demo.fleet import GPU, NPU, Fleet
from tests.e2e.demo.users import Users


def shared(users: Users, fleet: Fleet) -> QueueChange:
    """Give both teams a queue above theirs, and Search cards of its own; the last change."""
    research = QueueDocument(
        uid="new:research",
        name="research",
        description="What the teams of research share.",
        weight=2.0,
        entitlements={
            GPU: ChipQuota(reserved=4, guaranteed=16, cap=24),
            NPU: ChipQuota(guaranteed=16),
            TOTAL: ChipQuota(cap=48),
        },
    )
    queue_tree_apply(
        TreeEdit(
            queues={research.uid: research}, action=TreeAction.CREATE, note="agreed for the year"
        ),
        actor=users.admin,
        at=timezone.now(),
    )
    documents = queue_tree_documents()
    above = next(uid for uid, one in documents.items() if one.name == research.name)
    maps, search = documents[fleet.maps.uid], documents[fleet.search.uid]
    return queue_tree_apply(
        TreeEdit(
            queues={
                maps.uid: replace(maps, parent=above),
                search.uid: replace(
                    search,
                    parent=above,
                    max_running_per_user=2,
                    state=QueueState.CLOSED,
                    entitlements={
                        GPU: ChipQuota(guaranteed=4, cap=8),
                        NPU: ChipQuota(guaranteed=8, cap=16),
                    },
                ),
            },
            action=TreeAction.BULK,
            note="both now lend to each other first; nights are closed until the move",
        ),
        actor=users.admin,
        at=timezone.now(),
    )
