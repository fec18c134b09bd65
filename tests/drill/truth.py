"""What is really wrong: known to the drill alone. The product hears of it by texts (``voices``) only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from tests.drill.faults import Expected, Onset


@dataclass(slots=True, kw_only=True)
class Struck:
    """One fault and what came of it."""

    onset: Onset
    #: When a text told of it first.
    reported_at: datetime
    #: Seconds of the wall from the text to the card out of use; None where a later turn did it.
    seconds: float | None = None
    #: When it was answered as it should be; None: it was not.
    answered_at: datetime | None = None
    mended_at: datetime | None = None

    @property
    def expected(self) -> Expected:
        return self.onset.sign.expected

    @property
    def place(self) -> tuple[str, int | None]:
        return (self.onset.node.name, self.onset.index)

    @property
    def delay(self) -> timedelta:
        return self.reported_at - self.onset.at


@dataclass(slots=True)
class Truth:
    """Every fault so far."""

    struck: list[Struck] = field(default_factory=list)

    def add(self, onset: Onset, *, reported_at: datetime) -> Struck:
        one = Struck(onset=onset, reported_at=reported_at)
        self.struck.append(one)
        return one

    def standing(self) -> Iterator[Struck]:
        return (one for one in self.struck if one.mended_at is None)

    def unanswered(self) -> list[Struck]:
        return [one for one in self.standing() if one.answered_at is None]

    def is_free(self, onset: Onset) -> bool:
        """Whether nothing is wrong with that node: each fault is seen by itself."""
        return all(one.onset.node != onset.node for one in self.standing())

    def justifies(self, node: str, index: int | None, at: datetime) -> bool:
        """Whether something was wrong there at that time; a node answers for its cards."""
        return any(
            one.onset.node.name == node
            and (index is None or one.onset.index in (None, index))
            and one.reported_at <= at
            and (one.mended_at is None or at <= one.mended_at)
            for one in self.struck
            if one.expected is Expected.OUT
        )
