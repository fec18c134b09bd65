"""How a watch goes on after each of its ends, how long it waits before, and which names it has marked.

Nothing here reads a socket or a clock.

::

    the server ended it as asked ───────────────▶ watch on from the last version
    the server ended it early ──────────────────▶ watch on; with a pause if it hardly lived
    silent for longer than a healthy one is ────▶ watch on: opening it anew shows whether anybody is there
    broken, half-open, unreachable, busy ───────▶ pause, watch on from the last version
    the version is too old (410) ───────────────▶ list; with a pause if that just happened
    refused, or not what the API answers ───────▶ pause, list
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    NewConnectionError,
    ReadTimeoutError,
)

from controlplane.adapters.clusters.kubernetes.api import ApiRefused
from controlplane.ports.clusters import ClusterUnavailable

#: Seconds that a watch must have lived before its end counts as an accident of its own.
STEADY: Final = 5.0
_LONGEST = 30.0


class Garbled(Exception):
    """What came is no answer of the API; the message shows where it begins."""


class End(StrEnum):
    """How a listing or a watch came to its end."""

    #: When we had asked for it.
    AS_ASKED = "as_asked"
    #: Sooner, but in good order: the server restarts, or something between us has its own limits.
    EARLY = "early"
    #: It said nothing for longer than a healthy one does.
    SILENT = "silent"
    #: The connection broke, be it in the middle of a line.
    BROKEN = "broken"
    #: Somebody accepts connections and answers nothing.
    HALF_OPEN = "half_open"
    UNREACHABLE = "unreachable"
    #: It answered that it cannot now (429, 5xx).
    BUSY = "busy"
    #: It does not know that version any more (410).
    EXPIRED = "expired"
    REFUSED = "refused"
    GARBLED = "garbled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What comes after an end."""

    end: End
    #: Whether to list anew; otherwise the watch goes on from the last version.
    lists: bool
    #: Whether to wait before.
    waits: bool


#: Ends after which nothing that we know of can be relied on.
_LISTS = frozenset({End.EXPIRED, End.REFUSED, End.GARBLED})
_AT_ONCE = frozenset({End.AS_ASKED, End.SILENT})
#: Those that a pause follows only if the life before was short.
_IF_SHORT = frozenset({End.EARLY, End.EXPIRED})


def end_of(error: Exception | None, *, lived: float, asked: float) -> End:
    """Name the end of what lived for so many seconds, of those that it was asked to."""
    match error:
        case None:
            return End.AS_ASKED if lived >= asked - STEADY else End.EARLY
        case ApiRefused():
            return End.EXPIRED if error.expired else End.REFUSED
        case ReadTimeoutError():
            return End.SILENT
        case ClusterUnavailable():
            return _unavailable(error.__cause__)
        case HTTPError() | OSError():
            return End.BROKEN
    # An answer that lacks what every answer has, if it could be read at all.
    return End.GARBLED


def _unavailable(cause: BaseException | None) -> End:
    """Why a call was not answered, by what the transport said."""
    if cause is None:
        return End.BUSY
    if isinstance(cause, ReadTimeoutError):
        return End.HALF_OPEN
    if isinstance(cause, ValueError):
        return End.GARBLED
    nobody = isinstance(cause, NewConnectionError | ConnectTimeoutError)
    return End.UNREACHABLE if nobody else End.BROKEN


def step_after(end: End, *, lived: float) -> Step:
    """How to go on."""
    short = lived < STEADY
    waits = end not in _AT_ONCE and (short or end not in _IF_SHORT)
    return Step(end=end, lists=end in _LISTS, waits=waits)


class Pauses:
    """Jittered pauses that grow from ``shortest`` to 30 s while one failure follows another."""

    def __init__(
        self, *, shortest: float = 1.0, chance: Callable[[], float] = random.random
    ) -> None:
        self._shortest, self._chance = shortest, chance
        self._failures = 0

    def next(self) -> float:
        """Seconds to wait now. They spread, so that clients that lost a server together do not return together."""
        longest = min(_LONGEST, self._shortest * 2.0 ** min(self._failures + 1, 20))
        self._failures += 1
        return longest / 2 * (1.0 + self._chance())

    def reset(self) -> None:
        self._failures = 0


class Marks:
    """Names that may have changed and have not been told yet. Safe to share between threads.

    A name that is marked many times between two takings is told once; none is lost.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._names: set[str] = set()
        self._nodes = False
        #: Set while there is something to take.
        self.some = threading.Event()

    def launches(self, names: Iterable[str]) -> None:
        with self._lock:
            self._names.update(names)
            if self._names:
                self.some.set()

    def nodes(self) -> None:
        with self._lock:
            self._nodes = True
            self.some.set()

    def take(self) -> tuple[frozenset[str], bool]:
        """The names, and whether nodes changed; nothing is marked afterwards."""
        with self._lock:
            taken = frozenset(self._names), self._nodes
            self._names.clear()
            self._nodes = False
            self.some.clear()
        return taken
