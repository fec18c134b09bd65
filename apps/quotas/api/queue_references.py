"""The queue of a request: by name or uid, and usable by the team that submits."""

from __future__ import annotations

from apps.accounts.models import Team
from apps.quotas import selectors
from apps.quotas.models import Queue
from controlplane.domain.common.reasons import NONE, Reason
from controlplane.web.references import ReferenceNaming, reason_error, register_reference_naming
from controlplane.web.rest import VisibleUidField

DEFAULT_QUEUE = "default"

register_reference_naming(
    Queue, ReferenceNaming(noun=Reason("reference.noun.queue", "queue"), example=DEFAULT_QUEUE)
)


def queue_reference_field() -> VisibleUidField[Queue]:
    """The field of a request body that names a queue; it may be omitted."""
    return VisibleUidField(
        visible=selectors.queues_visible,
        required=False,
        default=DEFAULT_QUEUE,
        help_text="Name or uid of the queue.",
    )


def require_queue_of_team(queue: Queue | str, *, team: Team) -> Queue:
    """The queue, as the team may use it.

    :param queue: what ``queue_reference_field`` gave: a queue, or the default name where none was given.
    :raises ValidationError: for the field ``queue``, if the team may not submit to it.
    """
    usable = {each.name: each for each in selectors.queues_for_team(team)}
    name = queue if isinstance(queue, str) else queue.name
    if name not in usable:
        error = reason_error(
            Reason(
                "reference.queue.not_of_team",
                "the team {team} may not use the queue {queue}; available queues: {queues}",
                team=team.slug,
                queue=name,
                queues=", ".join(usable) or NONE,
            )
        )
        error.detail = {"queue": error.detail}
        raise error
    return usable[name]
