"""Per-user limits: a queue may limit how many claims of one user run at once in it and the queues below.

A claim that others are evicted for, or that has a reservation, counts as well: otherwise two claims of one user
would be nominated for what only one of them may use.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from controlplane.domain.quotas.queues import QueueSnapshot, path_to_root


class UserClaim(Protocol):
    """A claim, pending or running."""

    @property
    def queue(self) -> str: ...

    @property
    def user(self) -> str:
        """Its user; empty if unknown."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class UserLimitReached:
    """The limit that refuses one more claim of a user; amounts in claims."""

    user: str
    #: Name of the queue, the claim's own or one above, that refuses.
    queue: str
    bound: int
    #: That hold cards now.
    held: int
    #: That come first: others stop for them, or room is kept.
    first: int


class UserClaimCounts:
    """Claims by user in each queue and those below; it grows with a plan."""

    def __init__(self, queues: Mapping[str, QueueSnapshot], running: Iterable[UserClaim]) -> None:
        """:param running: claims that hold something, or claims that will."""
        #: For each queue, itself and its ancestors that have a limit; most have none.
        self._limits = {
            uid: tuple(
                queues[above]
                for above in path_to_root(uid, queues)
                if queues[above].max_running_per_user is not None
            )
            for uid in queues
        }
        self._held: Counter[tuple[str, str]] = Counter()
        self._first: Counter[tuple[str, str]] = Counter()
        for view in running:
            self.start(view)

    def limit(self, claim: UserClaim) -> UserLimitReached | None:
        """Return the limit that refuses the claim; None if there is none, or its user is unknown."""
        if not claim.user:
            return None
        for queue in self._limits.get(claim.queue, ()):
            key = queue.uid, claim.user
            held, first, bound = self._held[key], self._first[key], queue.max_running_per_user
            if bound is not None and held + first >= bound:
                return UserLimitReached(
                    user=claim.user, queue=queue.name, bound=bound, held=held, first=first
                )
        return None

    def start(self, claim: UserClaim) -> None:
        """Count the claim as running."""
        self._add_to_count(self._held, claim)

    def cancel(self, claim: UserClaim) -> None:
        """Uncount a claim that does not start after all."""
        self._add_to_count(self._held, claim, -1)

    def nominate(self, claim: UserClaim) -> None:
        """Count a claim that comes before others of its user."""
        self._add_to_count(self._first, claim)

    def _add_to_count(
        self, counted: Counter[tuple[str, str]], claim: UserClaim, more: int = 1
    ) -> None:
        if claim.user:
            for queue in self._limits.get(claim.queue, ()):
                counted[queue.uid, claim.user] += more
