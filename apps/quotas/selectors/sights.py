"""What somebody sees of the queues, and of what others do in them.

Everybody sees the tree: who is guaranteed what, and who has it. A queue's page opens to those who may use it, or a
queue below it, and to whoever administers a queue above it. What other teams' work is called is for members of the
team, for those administrators, and for administrators of the company; everybody else sees the team and the size.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from apps.accounts import selectors as accounts
from apps.quotas.models import Claim, Queue
from controlplane.domain.permissions import Permission, allows


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What one person sees; primary keys."""

    #: An administrator of the company sees everything.
    company: bool
    teams: frozenset[int]
    #: Queues whose pages open to them.
    opened: frozenset[int]
    #: Queues that they administer, or that are below such a one.
    managed: frozenset[int]

    def opens(self, queue_id: int) -> bool:
        return self.company or queue_id in self.opened

    def names(self, claim: Claim) -> bool:
        """Whether they may know what that work is called, and whose it is."""
        return self.company or claim.team_id in self.teams or claim.queue_id in self.managed


def sight_of(user: accounts.Person, queues: Iterable[Queue]) -> Sight:
    """:param queues: all that there are."""
    roles = accounts.roles_by_team(user)
    managing = {team for team, held in roles.items() if allows(held, Permission.MANAGE_QUEUES)}
    by_key = {queue.pk: queue for queue in queues}
    usable, managed = set[int](), set[int]()
    for queue in by_key.values():
        above = list(_way_up(queue, by_key))
        if any(one.team_id in managing for one in above):
            managed.add(queue.pk)
        if queue.team_id is None or queue.team_id in roles:
            usable.update(one.pk for one in above)
    return Sight(
        company=accounts.is_company_administrator(user),
        teams=frozenset(roles),
        opened=frozenset(usable | managed),
        managed=frozenset(managed),
    )


def _way_up(queue: Queue, by_key: dict[int, Queue]) -> Iterable[Queue]:
    """The queue and those above it; where they go in a circle, each once."""
    seen: set[int] = set()
    above: Queue | None = queue
    while above is not None and above.pk not in seen:
        seen.add(above.pk)
        yield above
        above = by_key.get(above.parent_id) if above.parent_id else None
