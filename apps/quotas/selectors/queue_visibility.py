"""Visibility of queues and of other teams' workloads in them.

Every user sees the tree with quota and usage. The page of a queue is visible to users who may submit to it, or to
a queue below it, and to queue admins of a queue above it. Names of workloads are visible to members of the team,
to those queue admins and to company administrators; other users see the team and the number of cards.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from apps.accounts import selectors as accounts
from apps.quotas.models import Claim, Queue
from controlplane.domain.common.permissions import Permission, roles_grant


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
