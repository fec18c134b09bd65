"""Numbers of batches: each is above all before it, also after a restart.

A number is at least the time in milliseconds, so that an agent that has forgotten everything goes on above what
it sent before. The file is for the clock that was set back meanwhile: it holds a number above all that were given,
and is written once a minute rather than with each batch.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

#: How far ahead of what was given the file is, as numbers run: a minute.
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
        self._now = now
        self._say = say
        self._last = self._bound = self._remembered()

    def next(self) -> int:
        """A number above every one before, 1 at least."""
        self._last = max(self._last + 1, int(self._now() * 1000))
        if self._last >= self._bound:
            self._bound = self._last + _AHEAD
            self._remember()
        return self._last

    def past(self, number: int) -> None:
        """Go on above a number that somebody else gave."""
        self._last = max(self._last, number)

    def _remembered(self) -> int:
        if self._path is None:
            return 0
        try:
            return max(0, int(self._path.read_text(encoding="ascii")))
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
