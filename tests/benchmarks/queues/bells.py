"""What one process rings when it has committed news, and another waits for, as the product's waker does."""

from __future__ import annotations

import os
import select
from contextlib import suppress
from dataclasses import dataclass

#: Bytes of a pipe that are read at once: however often it was rung, it was rung.
_ALL = 65_536


@dataclass(frozen=True, slots=True)
class Bell:
    """A pipe's two ends; each process uses one, by its number."""

    reading: int
    rung: int

    @classmethod
    def hung(cls) -> Bell:
        reading, rung = os.pipe()
        os.set_blocking(rung, False)
        return cls(reading, rung)

    def ring(self) -> None:
        """Never waits: a full pipe has been rung often enough."""
        with suppress(BlockingIOError, BrokenPipeError):
            os.write(self.rung, b"!")

    def wait(self, *, seconds: float) -> bool:
        """Whether it was rung since it was heard last, or within so many seconds.

        :raises EOFError: if nobody can ring it any more.
        """
        ready, _, _ = select.select([self.reading], [], [], seconds)
        if not ready:
            return False
        if not os.read(self.reading, _ALL):
            raise EOFError("nobody can ring it any more")
        return True
