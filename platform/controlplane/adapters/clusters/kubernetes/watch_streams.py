"""Watch streams of the API, how a watch ended, and how it continues.

Each chunk is parsed, handled and dropped: at most one page or one line is held in memory, however large the
cluster is. The retry rules read no socket and no clock::

    the server ended it on schedule ────────────▶ watch on from the last version
    the server ended it early ──────────────────▶ watch on; with a pause if it was short
    idle for longer than a healthy watch is ────▶ watch on: a new connection shows whether the server is there
    broken, half-open, unreachable, busy ───────▶ pause, watch on from the last version
    the version is too old (410) ───────────────▶ list; with a pause if that just happened
    refused, or malformed ──────────────────────▶ pause, list
"""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from enum import StrEnum
from typing import Final

from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    NewConnectionError,
    ProtocolError,
    ReadTimeoutError,
)
from urllib3.response import BaseHTTPResponse

from controlplane.adapters.clusters.kubernetes.api import (
    ApiRefused,
    MalformedResponse,
    Object,
    error_for_status,
)
from controlplane.ports.clusters import ClusterUnavailable

_CHUNK_SIZE = 1 << 16
#: Limit of etcd for an object: 1.5 MB.
_LONGEST_LINE = 8 << 20


class WatchStream:
    """One watch that is open. Another thread may end it while it is being read."""

    def __init__(self, response: BaseHTTPResponse, *, idle: float) -> None:
        self._response = response
        self._lock = threading.Lock()
        self._open = True
        # Until now the first byte was waited for; from now on a healthy server may be quiet.
        connection = getattr(response, "connection", None)
        socket = getattr(connection, "sock", None)
        if socket is not None:
            socket.settimeout(idle)

    def events(self, *, on_activity: Callable[[], None]) -> Iterator[Object]:
        """Each event as it comes, until the server ends it in good order; ``on_activity`` is called for each line.

        A line that was cut off is dropped: the same event comes again after the last resource version delivered.

        :raises ApiRefused: ``expired`` if the server reports meanwhile that the version is too old.
        :raises HTTPError: if the connection breaks or is idle for too long.
        :raises MalformedResponse: if a line is no event.
        """
        rest = b""
        for chunk in self._response.stream(_CHUNK_SIZE, decode_content=True):
            on_activity()
            *lines, rest = (rest + chunk).split(b"\n")
            if len(rest) > _LONGEST_LINE:
                raise MalformedResponse(f"a line of more than {_LONGEST_LINE} bytes: {rest[:80]!r}")
            for line in lines:
                if line.strip():
                    yield _parse_event(line)
        if rest.strip():
            raise ProtocolError(f"the connection ended within a line: {rest[:80]!r}")

    def interrupt(self) -> None:
        """Close it now: its reader gets the end, or an error, immediately."""
        with self._lock:
            if self._open:
                # It may be ending by itself at this very moment.
                with suppress(OSError, RuntimeError, ValueError):
                    self._response.shutdown()

    def close(self) -> None:
        with self._lock:
            self._open = False
            self._response.close()


def _parse_event(line: bytes) -> Object:
    try:
        event = json.loads(line)
    except ValueError as error:
        raise MalformedResponse(f"this is no JSON: {line[:80]!r}") from error
    item = event.get("object") if isinstance(event, dict) else None
    if not isinstance(item, dict) or not isinstance(event.get("type"), str):
        raise MalformedResponse(f"this is no event of Kubernetes: {line[:80]!r}")
    if event["type"] == "ERROR":
        raise error_for_status(int(item.get("code") or 500), item)
    found: Mapping[str, object] = event
    return found


#: Seconds that a watch must have lived before its end counts as an accident of its own.
STEADY: Final = 5.0
_LONGEST = 30.0


class WatchEndReason(StrEnum):
    """Why a list or a watch ended."""

    #: At the requested timeout, or on close.
    ON_SCHEDULE = "as_asked"
    #: Sooner, but in good order: the server restarts, or something between us has its own limits.
    EARLY = "early"
    #: It was idle for longer than a healthy one is.
    IDLE = "silent"
    #: The connection broke, be it in the middle of a line.
    BROKEN = "broken"
    #: The peer accepts connections and does not respond.
    HALF_OPEN = "half_open"
    UNREACHABLE = "unreachable"
    #: It answered that it cannot now (429, 5xx).
    BUSY = "busy"
    #: The resource version has expired (410).
    EXPIRED = "expired"
    REFUSED = "refused"
    GARBLED = "garbled"

    @property
    def lists(self) -> bool:
        """Whether what is known may be stale: list again; otherwise the watch continues from the last version."""
        return self in (WatchEndReason.EXPIRED, WatchEndReason.REFUSED, WatchEndReason.GARBLED)

    def pauses(self, *, lifetime: float) -> bool:
        """Whether to wait before; after some ends, only if the life before was short."""
        if self in (WatchEndReason.EARLY, WatchEndReason.EXPIRED):
            return lifetime < STEADY
        return self not in (WatchEndReason.ON_SCHEDULE, WatchEndReason.IDLE)


def classify_watch_end(
    error: Exception | None, *, lifetime: float, requested: float
) -> WatchEndReason:
    """Classify the end of a watch that lived for so many seconds of its timeout."""
    # A response without the mandatory fields, if it could be decoded at all.
    end = WatchEndReason.GARBLED
    match error, error and error.__cause__:
        case None, _:
            end = (
                WatchEndReason.ON_SCHEDULE
                if lifetime >= requested - STEADY
                else WatchEndReason.EARLY
            )
        case ApiRefused() as refusal, _:
            end = WatchEndReason.EXPIRED if refusal.expired else WatchEndReason.REFUSED
        case ReadTimeoutError(), _:
            end = WatchEndReason.IDLE
        case ClusterUnavailable(), None:
            end = WatchEndReason.BUSY
        case ClusterUnavailable(), ReadTimeoutError():
            end = WatchEndReason.HALF_OPEN
        case ClusterUnavailable(), NewConnectionError() | ConnectTimeoutError():
            end = WatchEndReason.UNREACHABLE
        case ClusterUnavailable(), ValueError():
            pass
        case ClusterUnavailable() | HTTPError() | OSError(), _:
            end = WatchEndReason.BROKEN
    return end


class Backoff:
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


class PendingChanges:
    """Names that may have changed and have not been delivered yet. Safe to share between threads.

    A name that is marked many times between two reads is delivered once; none is lost.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._names: set[str] = set()
        self._nodes = False
        #: Set while there is something to take.
        self.pending = threading.Event()

    def launches(self, names: Iterable[str]) -> None:
        with self._lock:
            self._names.update(names)
            if self._names:
                self.pending.set()

    def nodes(self) -> None:
        with self._lock:
            self._nodes = True
            self.pending.set()

    def take(self) -> tuple[frozenset[str], bool]:
        """The names, and whether nodes changed; nothing is marked afterwards."""
        with self._lock:
            result = frozenset(self._names), self._nodes
            self._names.clear()
            self._nodes = False
            self.pending.clear()
        return result
