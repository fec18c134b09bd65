"""Single changes of queues that come up every day."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from django.db import transaction

from apps.accounts.models import User
from apps.quotas.models import Queue
from apps.quotas.selectors.trees import tree_documents
from apps.quotas.services.trees import TreeAct, TreeEdit, tree_apply, tree_lock
from controlplane.domain.queues import QueueState


@transaction.atomic
def queue_state_set(
    *, queue: Queue, state: QueueState, actor: User, at: datetime, note: str = ""
) -> bool:
    """Open, drain or close a queue; what it holds goes on. Says whether that changed anything.

    :raises PermissionRefused: if the actor may not.
    :raises KeyError: if the queue was retired.
    """
    tree_lock()
    document = tree_documents()[queue.uid]
    if document.state is state:
        return False
    queues = {queue.uid: replace(document, state=state)}
    tree_apply(TreeEdit(queues=queues, act=TreeAct.EDIT, note=note), actor=actor, at=at)
    return True


def queue_ensure_default() -> Queue:
    """The queue that everybody may use."""
    queue, _ = Queue.objects.get_or_create(name="default")
    return queue
