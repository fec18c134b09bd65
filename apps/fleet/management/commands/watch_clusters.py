"""The process that follows clusters: one leads, the others wait to take over.

::

    lease ──▶ leader ── every 2 s: which clusters are registered? ──▶ one thread each: adapter.watch()
                │                                                          │
                └─ keeps the lease                                         ├─ launches.observed ─▶ jobs, serving
                                                                           ├─ cluster.changed ──▶ the inventory
                                                                           └─ reachable_at, error

A leader that dies loses the lease by itself; its successor lists everything, so nothing that happened in between
is missed. Two that lead for a moment tell some news twice, which costs a look and no more.
"""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

from django.core.management.base import BaseCommand
from django.db import Error, close_old_connections, connections
from django.utils import timezone

from apps.fleet import selectors
from apps.fleet.models import Cluster
from apps.fleet.services import clusters as services
from controlplane.persistence.leases import LeaderLease, hold_leader_lease
from controlplane.ports import adapter_registry
from controlplane.ports.adapter_registry import AdapterNotFound
from controlplane.ports.clusters import ClusterError, WatchableCluster

log = logging.getLogger(__name__)

#: How long others wait to take over from a leader that died.
LEASE_LASTS: Final = timedelta(seconds=10)
POLL_SECONDS: Final = 2.0
#: How often a sign of life is written down at most.
REACHED_EVERY: Final = 15.0
#: The minimum interval between requested inventories.
INVENTORY_EVERY: Final = 5.0
#: A watched cluster shows a sign of life twice a minute.
HEARTBEAT_TIMEOUT: Final = 60.0
_STOP_WITHIN = 3.0


def clusters_watch(*, stopping: threading.Event) -> None:
    """Follow every cluster that can be watched while this process leads; returns once it is stopped."""
    while not stopping.is_set():
        try:
            with hold_leader_lease(services.LEASE, ttl=LEASE_LASTS) as lease:
                if lease is not None:
                    log.info("this process watches the clusters now")
                    _watch_while_leader(lease, stopping=stopping)
        except Error:
            log.warning("the database is away; clusters are watched once it is back", exc_info=True)
            close_old_connections()
        stopping.wait(POLL_SECONDS)
    connections.close_all()


def _watch_while_leader(lease: LeaderLease, *, stopping: threading.Event) -> None:
    active: dict[str, ClusterWatch] = {}
    try:
        while not stopping.is_set() and lease.renew(ttl=LEASE_LASTS):
            _sync_watches(active)
            stopping.wait(POLL_SECONDS)
    finally:
        _stop_watches(list(active.values()))


def _sync_watches(active: dict[str, ClusterWatch]) -> None:
    """Start and stop threads to match the registered clusters; check heartbeats."""
    rows = {cluster.uid: cluster for cluster in Cluster.objects.all()}
    stale = [
        uid
        for uid, watch in active.items()
        if uid not in rows
        or not watch.running
        or watch.adapter_key != _cluster_adapter_parameters(rows[uid])
    ]
    _stop_watches([active.pop(uid) for uid in stale])
    for uid, cluster in rows.items():
        if uid in active:
            active[uid].check_heartbeat()
        elif adapter_registry.cluster_is_watchable(cluster.kind):
            watch = _start_watch(cluster)
            if watch is not None:
                active[uid] = watch


def _start_watch(cluster: Cluster) -> ClusterWatch | None:
    """Return None if the adapter cannot be created; the inventory records why."""
    try:
        adapter = selectors.cluster_adapter(cluster)
    except (ClusterError, AdapterNotFound) as error:
        log.warning(
            "a cluster cannot be watched", extra={"cluster": cluster.name, "error": str(error)}
        )
        return None
    if not isinstance(adapter, WatchableCluster):
        return None
    log.info("a cluster is watched from now on", extra={"cluster": cluster.name})
    return ClusterWatch(cluster, adapter)


def _stop_watches(active: list[ClusterWatch]) -> None:
    for watch in active:
        watch.stopping.set()
    limit = time.monotonic() + _STOP_WITHIN
    for watch in active:
        watch.join(within=max(0.0, limit - time.monotonic()))


def _cluster_adapter_parameters(cluster: Cluster) -> tuple[Any, ...]:
    """Return what the adapter is created from."""
    return cluster.kind, cluster.options, bytes(cluster.kubeconfig or b"")


class ClusterWatch:
    """A watch on one cluster, in a thread of its own."""

    def __init__(self, cluster: Cluster, adapter: WatchableCluster) -> None:
        self.cluster = cluster
        self.adapter_key = _cluster_adapter_parameters(cluster)
        self.stopping = threading.Event()
        self._adapter = adapter
        self._last_seen_at = time.monotonic()
        self._is_stale = False
        self._reached = IntervalThrottle(every=REACHED_EVERY)
        self._inventory = IntervalThrottle(every=INVENTORY_EVERY)
        self._thread = threading.Thread(
            target=self._watch_until_stopped, name=f"watch {cluster.name}", daemon=True
        )
        self._thread.start()

    @property
    def running(self) -> bool:
        return self._thread.is_alive()

    def join(self, *, within: float) -> None:
        self._thread.join(within)

    def check_heartbeat(self) -> None:
        """Record a heartbeat timeout; publish an inventory request that was throttled."""
        if self._inventory.is_pending():
            self._publish_nodes_changed()
        if time.monotonic() - self._last_seen_at < HEARTBEAT_TIMEOUT:
            return
        if not self._is_stale:
            log.warning("a cluster has fallen silent", extra={"cluster": self.cluster.name})
            self._is_stale = True
        services.cluster_unresponsive_record(cluster=self.cluster)

    def _watch_until_stopped(self) -> None:
        try:
            self._adapter.watch(
                launches_changed=self._with_fresh_database_connection(
                    self._publish_changed_launches
                ),
                nodes_changed=self._with_fresh_database_connection(self._handle_changed_nodes),
                alive=self._with_fresh_database_connection(self._record_heartbeat),
                stopping=self.stopping,
            )
        except Exception:
            # The leader starts it again in its next iteration.
            log.exception("a cluster is not watched any more", extra={"cluster": self.cluster.name})
        finally:
            connections.close_all()

    def _publish_changed_launches(self, names: frozenset[str]) -> None:
        services.launches_changed_publish(names=names)

    def _handle_changed_nodes(self) -> None:
        if self._inventory.is_due():
            self._publish_nodes_changed()

    def _publish_nodes_changed(self) -> None:
        services.cluster_changed_publish(cluster=self.cluster)

    def _record_heartbeat(self) -> None:
        self._last_seen_at = time.monotonic()
        if self._is_stale:
            # A successful inventory clears the error.
            self._is_stale = False
            log.info("a cluster is heard of again", extra={"cluster": self.cluster.name})
            self._publish_nodes_changed()
        if self._reached.is_due():
            services.cluster_reachable_record(cluster=self.cluster, at=timezone.now())

    def _with_fresh_database_connection(self, call: Callable[..., None]) -> Callable[..., None]:
        """Over a connection that works: the server may have been restarted since the last call."""

        def called(*arguments: Any) -> None:
            close_old_connections()
            call(*arguments)

        return called


class IntervalThrottle:
    """Limits an action to once per interval; a throttled action stays pending."""

    def __init__(self, *, every: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._every, self._clock = every, clock
        self._done_at = -every + clock()
        self._pending = False
        self._lock = threading.Lock()

    def is_due(self) -> bool:
        """Return whether to do it now; otherwise it stays pending."""
        with self._lock:
            return self._try_acquire(requested=True)

    def is_pending(self) -> bool:
        """Return whether a throttled action is due now."""
        with self._lock:
            return self._pending and self._try_acquire(requested=False)

    def _try_acquire(self, *, requested: bool) -> bool:
        due = self._clock() - self._done_at >= self._every
        self._pending = not due and (requested or self._pending)
        if due:
            self._done_at = self._clock()
        return due


class Command(BaseCommand):
    help = (
        "Follow every cluster that says when something changed. One process does so at a time; others wait to "
        "take over from it. Without it everything still happens, some seconds later."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        stopping = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stopping.set())
        clusters_watch(stopping=stopping)
