"""Reflectors: one thread for each kind of object that lists, watches, and starts again.

Each counts what it does and remembers the last version, so that every connection continues where the last one
ended. Three resources are watched, because each says something else at a different cost::

    launch pods    metadata only           every event marks its Launch as changed
    nodes          whole                   labels, taints, resources and conditions count; heartbeats do not
    other pods     metadata only, those    counts when a pod gets a node or releases it
                   bound to a node

Each remembers only what it needs to compare a new listing: names of Launches, a digest of each node.
"""

from __future__ import annotations

import hashlib
import json
import logging
import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from controlplane.adapters.clusters.kubernetes import object_names
from controlplane.adapters.clusters.kubernetes.api import KubernetesApi
from controlplane.adapters.clusters.kubernetes.watch_streams import (
    STEADY,
    Backoff,
    MalformedResponse,
    PendingChanges,
    WatchEnd,
    WatchStream,
    classify_watch_end,
    list_pages,
    retry_after,
)

log = logging.getLogger(__name__)

#: Ends that healthy connections have.
_EXPECTED_ENDS: Final = frozenset(
    {WatchEnd.ON_SCHEDULE, WatchEnd.EARLY, WatchEnd.IDLE, WatchEnd.EXPIRED}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchTimeouts:
    """Seconds. Bookmarks come about every minute, so a healthy watch is never idle for much longer."""

    #: Limit for the first byte of a response; past it, the connection counts as dead.
    answer: float = 15.0
    #: The watch's ``timeoutSeconds``: the server ends it after that.
    watch: float = 240.0
    #: After which an idle watch is reopened.
    idle: float = 75.0
    #: After which everything is listed again.
    listing: float = 600.0
    #: After which the server is probed.
    heartbeat: float = 20.0
    #: The shortest pause after a failure.
    pause: float = 1.0


DEFAULT_TIMEOUTS: Final = WatchTimeouts()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReflectorStatus:
    """How one follower has done so far."""

    resource: str
    #: From where it watches; empty before the first listing.
    version: str
    lists: int
    watches: int
    events: int
    #: Ends by their kind, including the requested ones.
    ends: Mapping[WatchEnd, int]
    #: Seconds since the last activity; None if there was none.
    idle: float | None
    #: Message of the last failure; empty after the next success.
    last_error: str

    @property
    def errors(self) -> int:
        """Ends that were not requested."""
        return sum(count for end, count in self.ends.items() if end is not WatchEnd.ON_SCHEDULE)


@dataclass(slots=True, kw_only=True)
class _ReflectorCounters:
    version: str = ""
    lists: int = 0
    watches: int = 0
    events: int = 0
    ends: Counter[WatchEnd] = field(default_factory=Counter)
    last_seen_at: float | None = None
    #: The ``timeoutSeconds`` of the present watch.
    requested_seconds: float = 0.0
    last_error: str = ""


class Reflector:
    """Follows one subject until it is stopped."""

    def __init__(
        self,
        api: KubernetesApi,
        resource: WatchedResource,
        *,
        stopping: threading.Event,
        timeouts: WatchTimeouts,
    ) -> None:
        self._api, self._resource, self._timeouts = api, resource, timeouts
        self._stopping = stopping
        self._backoff = Backoff(shortest=timeouts.pause)
        self._count = _ReflectorCounters()
        self._lock = threading.Lock()
        self._stream: WatchStream | None = None
        self._renewing = False
        self._listed_at: float | None = None

    def run(self) -> None:
        """Returns once it is stopped; nothing is marked after that."""
        while not self._stopping.is_set():
            began = time.monotonic()
            due = self._listed_at is None or began - self._listed_at >= self._timeouts.listing
            try:
                if due:
                    self._list_and_replace()
                    continue
                self._watch_changes(seconds=self._seconds_to_watch(at=began))
            except Exception as error:  # noqa: BLE001 - whatever it was, it is named and tried again
                self._handle_watch_end(error, began=began)
            else:
                self._handle_watch_end(None, began=began)

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

    def state(self) -> ReflectorStatus:
        count = self._count
        return ReflectorStatus(
            resource=self._resource.name,
            version=count.version,
            lists=count.lists,
            watches=count.watches,
            events=count.events,
            ends=dict(count.ends),
            idle=None if count.last_seen_at is None else time.monotonic() - count.last_seen_at,
            last_error=count.last_error,
        )

    @property
    def last_seen_at(self) -> float | None:
        """Time of its last activity, on the monotonic clock."""
        return self._count.last_seen_at

    def _seconds_to_watch(self, *, at: float) -> float:
        """As long as usual, or until the next listing."""
        left = self._timeouts.listing - (at - (self._listed_at or at))
        return max(1.0, min(self._timeouts.watch, left))

    def _note_activity(self) -> None:
        self._count.last_seen_at = time.monotonic()

    def _list_and_replace(self) -> None:
        resource, count = self._resource, self._count
        count.lists += 1
        resource.begin_listing()
        listing = list_pages(
            self._api,
            resource.path,
            query=resource.query,
            answer_within=self._timeouts.answer,
            metadata_only=resource.metadata_only,
        )
        for page in listing:
            self._note_activity()
            if self._stopping.is_set():
                return
            for item in page.items:
                resource.listed(item)
            count.version = page.version
        resource.end_listing()
        count.last_error = ""
        self._listed_at = time.monotonic()

    def _watch_changes(self, *, seconds: float) -> None:
        resource, count = self._resource, self._count
        count.watches += 1
        count.requested_seconds = seconds
        stream = WatchStream.to(
            self._api,
            resource.path,
            query=resource.query,
            version=count.version,
            seconds=seconds,
            answer_within=self._timeouts.answer,
            idle=self._timeouts.idle,
            metadata_only=resource.metadata_only,
        )
        with self._lock:
            self._stream = stream
        try:
            self._note_activity()
            count.last_error = ""
            if not self._stopping.is_set():
                self._apply_events(stream)
        finally:
            with self._lock:
                self._stream = None
            stream.close()

    def _apply_events(self, stream: WatchStream) -> None:
        for event in stream.events(on_activity=self._note_activity):
            if self._stopping.is_set():
                return
            if event["type"] != "BOOKMARK":
                self._count.events += 1
                self._resource.changed(event["type"], event["object"])
            self._count.version = event["object"]["metadata"]["resourceVersion"]

    def _handle_watch_end(self, error: Exception | None, *, began: float) -> None:
        """Count and report it, and wait for the backoff of such an end."""
        if self._renewing or self._stopping.is_set():
            self._renewing = False
            return
        count, lifetime = self._count, time.monotonic() - began
        end = classify_watch_end(error, lifetime=lifetime, requested=count.requested_seconds)
        step = retry_after(end, lifetime=lifetime)
        count.ends[end] += 1
        if step.lists:
            self._listed_at = None
        if lifetime >= STEADY and count.last_seen_at is not None and count.last_seen_at > began:
            self._backoff.reset()
        pause = self._backoff.next() if step.pauses else 0.0
        if error is not None and end not in _EXPECTED_ENDS:
            count.last_error = str(error)
        log.log(
            logging.INFO if end in _EXPECTED_ENDS else logging.WARNING,
            "a watch has ended",
            # What we did not foresee shows where it happened.
            exc_info=error
            if end is WatchEnd.GARBLED and not isinstance(error, MalformedResponse)
            else None,
            extra={
                "server": self._api.access.server,
                "subject": self._resource.name,
                "end": end.value,
                "error": "" if error is None else str(error),
                "lived_seconds": round(lifetime, 1),
                "pause_seconds": round(pause, 1),
            },
        )
        self._stopping.wait(pause)


Object = Mapping[str, Any]

#: A pod that has no node yet, or has ended, holds nothing.
_SCHEDULED_PODS = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"
_DIGEST_BYTES: Final = 8


class WatchedResource(Protocol):
    """One kind of object, and what of it is remembered."""

    name: str
    path: str
    query: Mapping[str, str]
    metadata_only: bool

    def begin_listing(self) -> None:
        """Discard the results of an earlier attempt at this listing."""
        ...

    def listed(self, item: Object) -> None: ...

    def end_listing(self) -> None:
        """The list is complete: mark what may have changed since the last one, deleted objects included."""
        ...

    def changed(self, kind: str, item: Object) -> None:
        """``kind`` is ``ADDED``, ``MODIFIED`` or ``DELETED``."""
        ...


class LaunchPods:
    """Pods of our Launches."""

    name = "our pods"
    path = "/api/v1/pods"
    metadata_only = True

    def __init__(self, *, installation: str, changes: PendingChanges) -> None:
        self.query: Mapping[str, str] = {
            "labelSelector": object_names.format_label_selector(
                object_names.owner_labels(installation=installation)
            )
        }
        self._changes = changes
        self._known: set[str] = set()
        self._seen: set[str] = set()

    def begin_listing(self) -> None:
        self._seen = set()

    def listed(self, item: Object) -> None:
        self._seen.update(_launch_of(item))

    def end_listing(self) -> None:
        self._changes.launches(self._known | self._seen)
        self._known, self._seen = self._seen, set()

    def changed(self, kind: str, item: Object) -> None:
        launch = _launch_of(item)
        # A deleted one stays known until a list lacks it: it may have other pods.
        self._known.update(launch)
        self._changes.launches(launch)


def _launch_of(pod: Object) -> tuple[str, ...]:
    """The name of its Launch; none if it has none."""
    launch = (pod["metadata"].get("labels") or {}).get(object_names.LAUNCH, "")
    return (str(launch),) if launch else ()


class ClusterNodes:
    name = "nodes"
    path = "/api/v1/nodes"
    metadata_only = False

    def __init__(self, *, changes: PendingChanges) -> None:
        self.query: Mapping[str, str] = {}
        self._changes = changes
        self._known: dict[str, bytes] = {}
        self._seen: dict[str, bytes] = {}

    def begin_listing(self) -> None:
        self._seen = {}

    def listed(self, item: Object) -> None:
        self._seen[item["metadata"]["name"]] = node_digest(item)

    def end_listing(self) -> None:
        if self._seen != self._known:
            self._changes.nodes()
        self._known, self._seen = self._seen, {}

    def changed(self, kind: str, item: Object) -> None:
        name = item["metadata"]["name"]
        digest = None if kind == "DELETED" else node_digest(item)
        if digest == self._known.get(name):
            return
        if digest is None:
            del self._known[name]
        else:
            self._known[name] = digest
        self._changes.nodes()


def node_digest(node: Object) -> bytes:
    """The same for two states of a node that mean the same to us: neither heartbeats nor versions count."""
    metadata, spec, status = node["metadata"], node.get("spec") or {}, node.get("status") or {}
    conditions = sorted(
        (str(one.get("type")), str(one.get("status"))) for one in status.get("conditions") or ()
    )
    significant = [
        metadata.get("uid"),
        metadata.get("labels"),
        metadata.get("annotations"),
        metadata.get("deletionTimestamp"),
        spec.get("unschedulable"),
        spec.get("taints"),
        status.get("allocatable"),
        status.get("capacity"),
        conditions,
    ]
    text = json.dumps(significant, sort_keys=True).encode()
    return hashlib.blake2b(text, digest_size=_DIGEST_BYTES).digest()


class OtherPods:
    """Pods that hold something of a node and are none of ours."""

    name = "others' pods"
    path = "/api/v1/pods"
    metadata_only = True

    def __init__(self, *, installation: str, changes: PendingChanges) -> None:
        self.query: Mapping[str, str] = {
            # Which those without any label match, too.
            "labelSelector": f"{object_names.INSTALLATION}!={installation}",
            "fieldSelector": _SCHEDULED_PODS,
        }
        self._changes = changes

    def begin_listing(self) -> None:
        """Nothing is remembered."""

    def listed(self, item: Object) -> None:
        """Its consequences are read from the cluster later, for all of them at once."""

    def end_listing(self) -> None:
        self._changes.nodes()

    def changed(self, kind: str, item: Object) -> None:
        # The selector makes an end of what was given a node an ADDED, and of what gave it back a DELETED.
        if kind != "MODIFIED":
            self._changes.nodes()
