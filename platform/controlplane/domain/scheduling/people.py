"""How many claims each person holds: a queue may let nobody run more than so many at once, those below counted in.

A claim for which others stop, or room is kept, counts as well: two of one person would otherwise be promised what
only one of them may use.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from controlplane.domain.quotas import way_up
from controlplane.domain.scheduling.snapshots import QueueView


class Member(Protocol):
    """A claim, whether it waits or runs."""

    @property
    def queue(self) -> str: ...

    @property
    def person(self) -> str:
        """Whose it is; empty where nobody knows."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonLimit:
    """What stands against one more claim of a person; all figures in claims."""

    person: str
    #: Name of the queue, the claim's own or one above, that refuses.
    queue: str
    bound: int
    #: That hold cards now.
    held: int
    #: That come first: others stop for them, or room is kept.
    first: int


class People:
    """Claims by person in each queue and those below; it grows with a plan."""

    def __init__(self, queues: Mapping[str, QueueView], running: Iterable[Member]) -> None:
        """:param running: claims that hold something, or claims that will."""
        #: The queues from each one up that limit people; most have none.
        self._limits = {
            uid: tuple(
                queues[above]
                for above in way_up(uid, queues)
                if queues[above].running_per_person is not None
            )
            for uid in queues
        }
        self._held: Counter[tuple[str, str]] = Counter()
        self._first: Counter[tuple[str, str]] = Counter()
        for view in running:
            self.start(view)

    def limit(self, claim: Member) -> PersonLimit | None:
        """What stands against the claim; None if nothing does, or nobody knows whose it is."""
        if not claim.person:
            return None
        for queue in self._limits.get(claim.queue, ()):
            key = queue.uid, claim.person
            held, first, bound = self._held[key], self._first[key], queue.running_per_person
            if bound is not None and held + first >= bound:
                return PersonLimit(
                    person=claim.person, queue=queue.name, bound=bound, held=held, first=first
                )
        return None

    def start(self, claim: Member) -> None:
        """It holds what it asked for."""
        self._count(self._held, claim)

    def cancel(self, claim: Member) -> None:
        """It does not start after all."""
        self._count(self._held, claim, -1)

    def promise(self, claim: Member) -> None:
        """It comes before others of the same person."""
        self._count(self._first, claim)

    def _count(self, counted: Counter[tuple[str, str]], claim: Member, more: int = 1) -> None:
        if claim.person:
            for queue in self._limits.get(claim.queue, ()):
                counted[queue.uid, claim.person] += more
