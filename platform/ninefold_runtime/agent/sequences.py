"""Numbers of batches: each is one more than the last, and after a restart above all before it.

The first is at least the time in milliseconds, so that an agent that has forgotten everything goes on above what
it sent before: batches are further apart than that. From then on there is no leap, so that the control plane knows
which are missing. The file is for the clock that was set back meanwhile: it holds a number above all that were
given, and is written seldom rather than with each batch.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

#: The highest number that the control plane takes.
_LARGEST = 2**63 - 1
#: How far ahead of what was given the file is. An agent that starts again leaps no further than that: a minute, as
#: milliseconds run.
_AHEAD = 60_000


class Sequence:
    """Gives numbers; ``path`` is where it remembers, None where it need not."""

    def __init__(
        self,
        path: Path | None,
        *,
        now: Callable[[], float] = time.time,
        say: Callable[[str], None] = print,
    ) -> None:
        self._path = path
        self._say = say
        self._bound = self._remembered()
        #: The highest that was given; before the first, the one below it.
        self.last = max(self._bound, int(now() * 1000), 1) - 1

    def next(self) -> int:
        """One more than the last, 1 at least."""
        self.last += 1
        if self.last >= self._bound:
            self._bound = self.last + _AHEAD
            self._remember()
        return self.last

    def past(self, number: int) -> None:
        """Go on above a number that somebody else gave."""
        self.last = max(self.last, number)

    def _remembered(self) -> int:
        if self._path is None:
            return 0
        try:
            number = int(self._path.read_text(encoding="ascii"))
            if not 0 <= number <= _LARGEST - _AHEAD:
                raise ValueError(f"{number} is no number that can be gone on from")
            return number
        except FileNotFoundError:
            return 0
        except (OSError, ValueError) as error:
            self._say(f"{self._path} cannot be used, numbers begin at the time: {error}")
            return 0

    def _remember(self) -> None:
        if self._path is None:
            return
        draft = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        try:
            draft.write_text(f"{self._bound}\n", encoding="ascii")
            draft.replace(self._path)
        except OSError as error:
            self._say(f"numbers of batches are not remembered: {error}")
