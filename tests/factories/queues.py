"""What was changed in the queue tree."""

from __future__ import annotations

from dataclasses import replace

from django.utils import timezone

from apps.accounts.models import User
from apps.quotas import services
from apps.quotas.models import Queue, QueueChange
from apps.quotas.selectors.queue_trees import queue_document


def queue_change(queue: Queue, *, actor: User, description: str = "for everybody") -> QueueChange:
    """The queue is described anew, by an administrator of the company."""
    document = replace(queue_document(queue), description=description)
    edit = services.TreeEdit(queues={queue.uid: document}, action=services.TreeAction.EDIT)
    return services.queue_tree_apply(edit, actor=actor, at=timezone.now())
