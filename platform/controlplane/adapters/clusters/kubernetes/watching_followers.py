"""One thread that follows one kind of object: list, watch on, and again for ever.

It counts what it does and remembers the last version, so that every connection goes on where the last one ended.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from controlplane.adapters.clusters.kubernetes.api import Api
from controlplane.adapters.clusters.kubernetes.watching_rules import (
    STEADY,
    End,
    Garbled,
    Pauses,
    end_of,
    step_after,
)
from controlplane.adapters.clusters.kubernetes.watching_streams import Stream, pages
from controlplane.adapters.clusters.kubernetes.watching_subjects import Subject

log = logging.getLogger(__name__)

#: Ends that healthy connections have.
_HARMLESS: Final = frozenset({End.AS_ASKED, End.EARLY, End.SILENT, End.EXPIRED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """Seconds. Bookmarks come about every minute, so a healthy watch is never silent for much longer."""

    #: Within which the first byte of an answer comes; later, and nobody is behind the connection.
    answer: float = 15.0
    #: After which the server is asked to end a watch.
    watch: float = 240.0
    #: After which a silent watch is opened anew.
    silence: float = 75.0
    #: After which everything is listed again.
    listing: float = 600.0
    #: After which the server is asked for a sign of life.
    pulse: float = 20.0
    #: The shortest pause after a failure.
    pause: float = 1.0


USUAL: Final = Terms()


@dataclass(frozen=True, slots=True, kw_only=True)
class Following:
    """How one follower has done so far."""

    subject: str
    #: From where it watches; empty before the first listing.
    version: str
    lists: int
    watches: int
    events: int
    #: Ends by their kind; those that were asked for are among them.
    ends: Mapping[End, int]
    #: Seconds since the last sign of life; None if there was none.
    silence: float | None
    #: What the last failure said; empty once it goes well again.
    trouble: str

    @property
    def errors(self) -> int:
        """Ends that nobody asked for."""
        return sum(count for end, count in self.ends.items() if end is not End.AS_ASKED)


@dataclass(slots=True, kw_only=True)
class _Count:
    version: str = ""
    lists: int = 0
    watches: int = 0
    events: int = 0
    ends: Counter[End] = field(default_factory=Counter)
    heard_at: float | None = None
    #: For which the present watch was asked.
    asked_seconds: float = 0.0
    trouble: str = ""


class Follower:
    """Follows one subject until it is stopped."""

    def __init__(
        self, api: Api, subject: Subject, *, stopping: threading.Event, terms: Terms
    ) -> None:
        self._api, self._subject, self._terms = api, subject, terms
        self._stopping = stopping
        self._pauses = Pauses(shortest=terms.pause)
        self._count = _Count()
        self._lock = threading.Lock()
        self._stream: Stream | None = None
        self._renewing = False
        self._listed_at: float | None = None

    def run(self) -> None:
        """Returns once it is stopped; nothing is marked after that."""
        while not self._stopping.is_set():
            began = time.monotonic()
            due = self._listed_at is None or began - self._listed_at >= self._terms.listing
            try:
                if due:
                    self._list()
                    continue
                self._watch(seconds=self._seconds_to_watch(at=began))
            except Exception as error:  # noqa: BLE001 - whatever it was, it is named and tried again
                self._ended(error, began=began)
            else:
                self._ended(None, began=began)

    def interrupt(self) -> None:
        """End what it waits for, at once where an answer has begun."""
        with self._lock:
            if self._stream is not None:
                self._stream.interrupt()

    def renew(self) -> None:
        """Watch on over a new connection: the old one may be dead without knowing it."""
        with self._lock:
            if self._stream is not None:
                self._renewing = True
                self._stream.interrupt()

    def state(self) -> Following:
        count = self._count
        return Following(
            subject=self._subject.name,
            version=count.version,
            lists=count.lists,
            watches=count.watches,
            events=count.events,
            ends=dict(count.ends),
            silence=None if count.heard_at is None else time.monotonic() - count.heard_at,
            trouble=count.trouble,
        )

    @property
    def heard_at(self) -> float | None:
        """Of its last sign of life, on the monotonic clock."""
        return self._count.heard_at

    def _seconds_to_watch(self, *, at: float) -> float:
        """As long as usual, or until the next listing."""
        left = self._terms.listing - (at - (self._listed_at or at))
        return max(1.0, min(self._terms.watch, left))

    def _heard(self) -> None:
        self._count.heard_at = time.monotonic()

    def _list(self) -> None:
        subject, count = self._subject, self._count
        count.lists += 1
        subject.listing_begins()
        listing = pages(
            self._api,
            subject.path,
            query=subject.query,
            answer_within=self._terms.answer,
            metadata_only=subject.metadata_only,
        )
        for page in listing:
            self._heard()
            if self._stopping.is_set():
                return
            for item in page.items:
                subject.listed(item)
            count.version = page.version
        subject.listing_ends()
        count.trouble = ""
        self._listed_at = time.monotonic()

    def _watch(self, *, seconds: float) -> None:
        subject, count = self._subject, self._count
        count.watches += 1
        count.asked_seconds = seconds
        stream = Stream.to(
            self._api,
            subject.path,
            query=subject.query,
            version=count.version,
            seconds=seconds,
            answer_within=self._terms.answer,
            silence=self._terms.silence,
            metadata_only=subject.metadata_only,
        )
        with self._lock:
            self._stream = stream
        try:
            self._heard()
            count.trouble = ""
            if not self._stopping.is_set():
                self._follow(stream)
        finally:
            with self._lock:
                self._stream = None
            stream.close()

    def _follow(self, stream: Stream) -> None:
        for event in stream.events(heard=self._heard):
            if self._stopping.is_set():
                return
            if event["type"] != "BOOKMARK":
                self._count.events += 1
                self._subject.changed(event["type"], event["object"])
            self._count.version = event["object"]["metadata"]["resourceVersion"]

    def _ended(self, error: Exception | None, *, began: float) -> None:
        """Count it, tell it, and wait as long as such an end asks for."""
        if self._renewing or self._stopping.is_set():
            self._renewing = False
            return
        count, lived = self._count, time.monotonic() - began
        end = end_of(error, lived=lived, asked=count.asked_seconds)
        step = step_after(end, lived=lived)
        count.ends[end] += 1
        if step.lists:
            self._listed_at = None
        if lived >= STEADY and count.heard_at is not None and count.heard_at > began:
            self._pauses.reset()
        pause = self._pauses.next() if step.waits else 0.0
        if error is not None and end not in _HARMLESS:
            count.trouble = str(error)
        log.log(
            logging.INFO if end in _HARMLESS else logging.WARNING,
            "a watch has ended",
            # What we did not foresee shows where it happened.
            exc_info=error if end is End.GARBLED and not isinstance(error, Garbled) else None,
            extra={
                "server": self._api.access.server,
                "subject": self._subject.name,
                "end": end.value,
                "error": "" if error is None else str(error),
                "lived_seconds": round(lived, 1),
                "pause_seconds": round(pause, 1),
            },
        )
        self._stopping.wait(pause)
