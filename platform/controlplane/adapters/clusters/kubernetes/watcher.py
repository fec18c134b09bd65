"""Watch of one cluster, so that a change is known within a second without polling.

::

    reflector of launch pods ──┐
    reflector of nodes ────────┤ changes ─▶ PendingChanges ─ at most every 0.2 s ─▶ launches_changed, nodes_changed
    reflector of other pods ───┘
    heartbeat: requests the version after 20 s without activity ────────▶ alive

Each reflector lists (in pages), then watches from the listing's version (see ``watch_streams`` for the retry
rules). An event only marks a name: the subscriber reads the state from the cluster, so a duplicate event does
no harm, and a full listing every ten minutes repairs whatever was lost. Three resources are watched, because each
says something else at a different cost::

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
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final

from controlplane.adapters.clusters.kubernetes import object_names
from controlplane.adapters.clusters.kubernetes.api import (
    ApiRefused,
    KubernetesApi,
    MalformedResponse,
    Object,
    labels_of,
    nested_field,
    object_name,
)
from controlplane.adapters.clusters.kubernetes.watch_streams import (
    STEADY,
    Backoff,
    PendingChanges,
    WatchEndReason,
    WatchStream,
    classify_watch_end,
)
from controlplane.ports.clusters import ClusterError

log = logging.getLogger(__name__)

#: Ends that healthy connections have.
_EXPECTED_ENDS: Final = frozenset(
    {WatchEndReason.ON_SCHEDULE, WatchEndReason.EARLY, WatchEndReason.IDLE, WatchEndReason.EXPIRED}
)
#: Objects in one page of a listing.
_PAGE: Final = 200
#: Minimum interval between two deliveries of names.
_NOTIFY_EVERY: Final = 0.2
#: After a listener failed: the same names are delivered again.
_NOTIFY_RETRY_AFTER: Final = 1.0
#: How often ``stopping`` is checked while idle.
_STOP_CHECK_EVERY: Final = 0.5
#: How often ``alive`` is called at most.
_ALIVE_EVERY: Final = 5.0
#: Time for threads to end. One that waits for a first byte takes longer, but delivers nothing.
_END_WITHIN: Final = 0.4
#: A pod that has no node yet, or has ended, holds nothing.
_SCHEDULED_PODS: Final = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"
_DIGEST_BYTES: Final = 8


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


class WatchedResource:
    """Objects of one kind, and what is remembered of them to compare a new listing."""

    name: str
    path = "/api/v1/pods"
    query: Mapping[str, str] = {}
    metadata_only = True

    def __init__(self, *, changes: PendingChanges) -> None:
        self._changes = changes

    def stored_state(self, item: Object) -> Mapping[str, bytes]:
        """What a listing needs to know of the object, by name."""
        return {}

    def replace(self, listed: Mapping[str, bytes]) -> None:
        """A listing is complete: mark what may have changed since the last one, deleted objects included."""
        self._changes.nodes()

    def changed(self, kind: str, item: Object) -> None:
        """``kind`` is ``ADDED``, ``MODIFIED`` or ``DELETED``."""
        raise NotImplementedError


class WatchedLaunchPods(WatchedResource):
    """Pods of our Launches."""

    name = "our pods"

    def __init__(self, *, installation: str, changes: PendingChanges) -> None:
        super().__init__(changes=changes)
        self.query = object_names.owned_objects_query(installation=installation)
        self._known: set[str] = set()

    def stored_state(self, item: Object) -> Mapping[str, bytes]:
        launch = labels_of(item).get(object_names.LAUNCH)
        return {str(launch): b""} if launch else {}

    def replace(self, listed: Mapping[str, bytes]) -> None:
        self._changes.launches(self._known | listed.keys())
        self._known = set(listed)

    def changed(self, kind: str, item: Object) -> None:
        launch = self.stored_state(item)
        # A deleted one stays known until a list lacks it: it may have other pods.
        self._known.update(launch)
        self._changes.launches(launch)


class WatchedNodes(WatchedResource):
    name = "nodes"
    path = "/api/v1/nodes"
    metadata_only = False

    def __init__(self, *, changes: PendingChanges) -> None:
        super().__init__(changes=changes)
        self._known: dict[str, bytes] = {}

    def stored_state(self, item: Object) -> Mapping[str, bytes]:
        return {object_name(item): node_digest(item)}

    def replace(self, listed: Mapping[str, bytes]) -> None:
        if listed != self._known:
            self._changes.nodes()
        self._known = dict(listed)

    def changed(self, kind: str, item: Object) -> None:
        name, earlier = object_name(item), self._known.pop(object_name(item), None)
        if kind != "DELETED":
            self._known[name] = node_digest(item)
        if self._known.get(name) != earlier:
            self._changes.nodes()


class WatchedForeignPods(WatchedResource):
    """Foreign pods that use resources of a node; their requests are read later for all of them."""

    name = "others' pods"

    def __init__(self, *, installation: str, changes: PendingChanges) -> None:
        super().__init__(changes=changes)
        self.query = {
            # Which those without any label match, too.
            "labelSelector": f"{object_names.INSTALLATION}!={installation}",
            "fieldSelector": _SCHEDULED_PODS,
        }

    def changed(self, kind: str, item: Object) -> None:
        # The selector makes an end of what was given a node an ADDED, and of what gave it back a DELETED.
        if kind != "MODIFIED":
            self._changes.nodes()


def node_digest(node: Object) -> bytes:
    """The same for two states of a node that mean the same to us: neither heartbeats nor versions count."""
    metadata = ("uid", "labels", "annotations", "deletionTimestamp")
    significant = [
        *(node["metadata"].get(field) for field in metadata),
        *(nested_field(node, "spec").get(field) for field in ("unschedulable", "taints")),
        *(nested_field(node, "status").get(field) for field in ("allocatable", "capacity")),
        sorted(
            (str(one.get("type")), str(one.get("status")))
            for one in nested_field(node, "status", "conditions")
        ),
    ]
    text = json.dumps(significant, sort_keys=True).encode()
    return hashlib.blake2b(text, digest_size=_DIGEST_BYTES).digest()


@dataclass(slots=True, kw_only=True)
class ReflectorStatus:
    """How one reflector has done so far. Only the reflector's own thread changes it."""

    resource: str
    #: Resource version of the watch; empty before the first listing.
    version: str = ""
    lists: int = 0
    watches: int = 0
    events: int = 0
    #: Ends by their kind, including the requested ones.
    ends: Counter[WatchEndReason] = field(default_factory=Counter)
    #: Time of the last activity on the monotonic clock; None if there was none.
    last_seen_at: float | None = None
    #: Message of the last failure; empty after the next success.
    last_error: str = ""

    @property
    def errors(self) -> int:
        """Ends that were not requested."""
        return sum(
            count for end, count in self.ends.items() if end is not WatchEndReason.ON_SCHEDULE
        )


class Reflector:
    """Lists and watches one resource until it is stopped; each connection continues from the last version."""

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
        self.status = ReflectorStatus(resource=resource.name)
        self._lock = threading.Lock()
        self._stream: WatchStream | None = None
        self._renewing = False
        self._listed_at: float | None = None

    def run(self) -> None:
        """Returns once it is stopped; nothing is marked after that."""
        while not self._stopping.is_set():
            began = time.monotonic()
            left = self._timeouts.listing - (began - (self._listed_at or began))
            # As long as usual, or until the next listing.
            seconds = max(1.0, min(self._timeouts.watch, left))
            error: Exception | None = None
            try:
                if self._listed_at is None or left <= 0:
                    self._list_and_replace()
                    continue
                self._watch_changes(seconds=seconds)
            except Exception as failure:  # noqa: BLE001 - whatever it was, it is named and tried again
                error = failure
            self._handle_watch_end(error, began=began, requested=seconds)

    def interrupt(self, *, renew: bool = False) -> None:
        """End waiting, immediately if a response has begun.

        :param renew: watch on over a new connection: the old one may be dead without an error.
        """
        with self._lock:
            if self._stream is not None:
                self._renewing = renew
                self._stream.interrupt()

    def _note_activity(self) -> None:
        self.status.last_seen_at = time.monotonic()

    def _list_and_replace(self) -> None:
        resource, status, listed = self._resource, self.status, dict[str, bytes]()
        status.lists += 1
        pages = self._api.pages(
            resource.path,
            query=resource.query,
            size=_PAGE,
            metadata_only=resource.metadata_only,
            read_within=self._timeouts.answer,
        )
        for page in pages:
            status.version = page.version
            self._note_activity()
            if self._stopping.is_set():
                return
            for item in page.items:
                listed.update(resource.stored_state(item))
        resource.replace(listed)
        status.last_error = ""
        self._note_activity()
        self._listed_at = status.last_seen_at

    def _watch_changes(self, *, seconds: float) -> None:
        resource, status = self._resource, self.status
        status.watches += 1
        response = self._api.open_watch(
            resource.path,
            query=resource.query,
            version=status.version,
            seconds=seconds,
            metadata_only=resource.metadata_only,
            read_within=self._timeouts.answer,
        )
        stream = WatchStream(response, idle=self._timeouts.idle)
        with self._lock:
            self._stream = stream
        try:
            status.last_error = ""
            self._note_activity()
            for event in stream.events(on_activity=self._note_activity):
                if self._stopping.is_set():
                    return
                if event["type"] != "BOOKMARK":
                    status.events += 1
                    resource.changed(event["type"], event["object"])
                status.version = event["object"]["metadata"]["resourceVersion"]
        finally:
            with self._lock:
                self._stream = None
            stream.close()

    def _handle_watch_end(self, error: Exception | None, *, began: float, requested: float) -> None:
        """Count and report it, and wait for the backoff of such an end."""
        if self._renewing or self._stopping.is_set():
            self._renewing = False
            return
        status, lifetime = self.status, time.monotonic() - began
        end = classify_watch_end(error, lifetime=lifetime, requested=requested)
        expected = end in _EXPECTED_ENDS
        if end.lists:
            self._listed_at = None
        if lifetime >= STEADY and (status.last_seen_at or 0.0) > began:
            self._backoff.reset()
        pause = self._backoff.next() if end.pauses(lifetime=lifetime) else 0.0
        status.ends[end] += 1
        if error is not None and not expected:
            status.last_error = str(error)
        unforeseen = end is WatchEndReason.GARBLED and not isinstance(error, MalformedResponse)
        log.log(
            logging.INFO if expected else logging.WARNING,
            "a watch has ended",
            # Unexpected errors are logged with their origin.
            exc_info=error if unforeseen else None,
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


class Watcher:
    """Watches every resource of one cluster that the product needs, once."""

    def __init__(
        self, api: KubernetesApi, *, installation: str, timeouts: WatchTimeouts = DEFAULT_TIMEOUTS
    ) -> None:
        self._api, self._timeouts = api, timeouts
        self._changes = PendingChanges()
        self._over = threading.Event()
        self._heartbeat_at: float | None = None
        self._alive_notified_at = 0.0
        resources: tuple[WatchedResource, ...] = (
            WatchedLaunchPods(installation=installation, changes=self._changes),
            WatchedNodes(changes=self._changes),
            WatchedForeignPods(installation=installation, changes=self._changes),
        )
        self._reflectors = tuple(
            Reflector(api, resource, stopping=self._over, timeouts=timeouts)
            for resource in resources
        )

    def state(self) -> tuple[ReflectorStatus, ...]:
        return tuple(reflector.status for reflector in self._reflectors)

    def watch(
        self,
        *,
        launches_changed: Callable[[frozenset[str]], None],
        nodes_changed: Callable[[], None],
        alive: Callable[[], None],
        stopping: threading.Event,
    ) -> None:
        """See ``controlplane.ports.clusters.WatchableCluster``. All three are called in the caller's thread."""
        work = (*(reflector.run for reflector in self._reflectors), self._run_heartbeat)
        threads = [threading.Thread(target=each, name="watch", daemon=True) for each in work]
        for thread in threads:
            thread.start()
        try:
            while not stopping.is_set():
                self._notify_alive(alive)
                if self._changes.pending.wait(_STOP_CHECK_EVERY) and not stopping.is_set():
                    notified = self._notify_listener(launches_changed, nodes_changed)
                    stopping.wait(_NOTIFY_EVERY if notified else _NOTIFY_RETRY_AFTER)
        finally:
            self._over.set()
            for reflector in self._reflectors:
                reflector.interrupt()
            limit = time.monotonic() + _END_WITHIN
            for thread in threads:
                thread.join(max(0.0, limit - time.monotonic()))

    def _notify_listener(
        self, launches_changed: Callable[[frozenset[str]], None], nodes_changed: Callable[[], None]
    ) -> bool:
        """Whether the listener accepted it; otherwise it is delivered again."""
        launches, nodes = self._changes.take()
        try:
            if launches:
                launches_changed(launches)
                launches = frozenset()
            if nodes:
                nodes_changed()
        except Exception:
            log.exception("news of a cluster were not taken; they are told again")
            self._changes.launches(launches)
            if nodes:
                self._changes.nodes()
            return False
        return True

    def _notify_alive(self, alive: Callable[[], None]) -> None:
        now, last_notified = time.monotonic(), self._alive_notified_at
        if now < last_notified + _ALIVE_EVERY or (self._last_seen_at() or 0.0) <= last_notified:
            return
        self._alive_notified_at = now
        try:
            alive()
        except Exception:
            log.exception("a sign of life of a cluster was not taken")

    def _last_seen_at(self) -> float | None:
        seen = [self._heartbeat_at, *(status.last_seen_at for status in self.state())]
        return max((at for at in seen if at is not None), default=None)

    def _run_heartbeat(self) -> None:
        """Probe the server after a while without activity.

        After a success that follows a failure, old connections may be half-open: they are replaced.
        """
        began, failed = time.monotonic(), False
        while not self._over.is_set():
            idle_seconds = time.monotonic() - (self._last_seen_at() or began)
            if idle_seconds < self._timeouts.heartbeat:
                self._over.wait(self._timeouts.heartbeat - idle_seconds)
            elif self._probe_cluster():
                self._heartbeat_at = time.monotonic()
                if failed:
                    for reflector in self._reflectors:
                        reflector.interrupt(renew=True)
                failed = False
            else:
                failed = True
                self._over.wait(self._timeouts.heartbeat / 4)

    def _probe_cluster(self) -> bool:
        try:
            self._api.probe(read_within=self._timeouts.answer)
        except ApiRefused as refusal:
            # A credential without permission for the version was still accepted; an unknown one was not.
            return refusal.status != HTTPStatus.UNAUTHORIZED
        except (ClusterError, OSError) as error:
            log.warning(
                "a cluster shows no sign of life",
                extra={"server": self._api.access.server, "error": str(error)},
            )
            return False
        return True
