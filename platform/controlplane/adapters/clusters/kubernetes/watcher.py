"""Watch of one cluster, so that a change is known within a second without polling.

::

    reflector of launch pods ──┐
    reflector of nodes ────────┤ changes ─▶ PendingChanges ─ at most every 0.2 s ─▶ launches_changed, nodes_changed
    reflector of other pods ───┘
    heartbeat: requests the version after 20 s without activity ────────▶ alive

Each reflector lists (in pages), then watches from the listing's version (see ``watch_streams`` for the retry
rules). An event only marks a name: the subscriber reads the state from the cluster, so a duplicate event does
no harm, and a full listing every ten minutes repairs whatever was lost.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Final

from controlplane.adapters.clusters.kubernetes.api import ApiRefused, KubernetesApi
from controlplane.adapters.clusters.kubernetes.reflectors import (
    DEFAULT_TIMEOUTS,
    ClusterNodes,
    LaunchPods,
    OtherPods,
    Reflector,
    ReflectorStatus,
    WatchedResource,
    WatchTimeouts,
)
from controlplane.adapters.clusters.kubernetes.watch_streams import PendingChanges
from controlplane.ports.clusters import ClusterError

log = logging.getLogger(__name__)

#: Minimum interval between two deliveries of names.
_NOTIFY_EVERY: Final = 0.2
#: After a listener failed: the same names are delivered again.
_NOTIFY_RETRY_AFTER: Final = 1.0
#: How often ``stopping`` is checked while idle.
_STOP_CHECK_EVERY: Final = 0.5
#: How often ``alive`` is called at most.
_ALIVE_EVERY: Final = 5.0
#: How long threads may take to end. One that waits for a first byte takes longer, but delivers nothing.
_END_WITHIN: Final = 0.4


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
            LaunchPods(installation=installation, changes=self._changes),
            ClusterNodes(changes=self._changes),
            OtherPods(installation=installation, changes=self._changes),
        )
        self._reflectors = tuple(
            Reflector(api, resource, stopping=self._over, timeouts=timeouts)
            for resource in resources
        )

    def state(self) -> tuple[ReflectorStatus, ...]:
        """How each follower has done so far."""
        return tuple(reflector.state() for reflector in self._reflectors)

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
        self,
        launches_changed: Callable[[frozenset[str]], None],
        nodes_changed: Callable[[], None],
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
        last_seen_at, now = self._last_seen_at(), time.monotonic()
        if (
            last_seen_at is None
            or last_seen_at <= self._alive_notified_at
            or now < self._alive_notified_at + _ALIVE_EVERY
        ):
            return
        self._alive_notified_at = now
        try:
            alive()
        except Exception:
            log.exception("a sign of life of a cluster was not taken")

    def _last_seen_at(self) -> float | None:
        heartbeats = [
            self._heartbeat_at,
            *(reflector.last_seen_at for reflector in self._reflectors),
        ]
        return max((heartbeat for heartbeat in heartbeats if heartbeat is not None), default=None)

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
                        reflector.renew()
                failed = False
            else:
                failed = True
                self._over.wait(self._timeouts.heartbeat / 4)

    def _probe_cluster(self) -> bool:
        try:
            self._api.open("/version", read_within=self._timeouts.answer).close()
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
