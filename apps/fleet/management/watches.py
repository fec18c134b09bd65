"""The process that follows clusters: one leads, the others wait to take over.

::

    lease ──▶ leader ── every 2 s: which clusters are registered? ──▶ one thread each: adapter.watch()
                │                                                          │
                └─ keeps the lease                                         ├─ launches.observed ─▶ jobs, serving
                                                                           ├─ cluster.changed ──▶ the inventory
                                                                           └─ reachable_at, trouble

A leader that dies loses the lease by itself; its successor lists everything, so nothing that happened in between
is missed. Two that lead for a moment tell some news twice, which costs a look and no more.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

from django.db import Error, close_old_connections, connections
from django.utils import timezone

from apps.fleet import selectors
from apps.fleet.models import Cluster
from apps.fleet.services import watching as services
from controlplane.persistence.leases import LoopLease, loop_lease
from controlplane.ports import registry
from controlplane.ports.clusters import ClusterError, Watchable
from controlplane.ports.registry import UnknownAdapter

log = logging.getLogger(__name__)

#: How long a leader that died keeps others waiting.
LEASE_LASTS: Final = timedelta(seconds=10)
TURN_SECONDS: Final = 2.0
#: How often a sign of life is written down at most.
REACHED_EVERY: Final = 15.0
#: How often an inventory is asked for at most, however much happens.
INVENTORY_EVERY: Final = 5.0
#: A watched cluster shows a sign of life twice a minute.
SILENT_AFTER: Final = 60.0
_STOP_WITHIN = 3.0


def clusters_watch(*, stopping: threading.Event) -> None:
    """Follow every cluster that can be watched while this process leads; returns once it is stopped."""
    while not stopping.is_set():
        try:
            with loop_lease(services.LEASE, ttl=LEASE_LASTS) as lease:
                if lease is not None:
                    log.info("this process watches the clusters now")
                    _lead(lease, stopping=stopping)
        except Error:
            log.warning("the database is away; clusters are watched once it is back", exc_info=True)
            close_old_connections()
        stopping.wait(TURN_SECONDS)
    connections.close_all()


def _lead(lease: LoopLease, *, stopping: threading.Event) -> None:
    watches: dict[str, Watch] = {}
    try:
        while not stopping.is_set() and lease.renew(ttl=LEASE_LASTS):
            _adjust(watches)
            stopping.wait(TURN_SECONDS)
    finally:
        _end(list(watches.values()))


def _adjust(watches: dict[str, Watch]) -> None:
    """Make the threads match the rows, and say which clusters have fallen silent."""
    rows = {cluster.uid: cluster for cluster in Cluster.objects.all()}
    stale = [
        uid
        for uid, watch in watches.items()
        if uid not in rows or not watch.running or watch.terms != _terms_of(rows[uid])
    ]
    _end([watches.pop(uid) for uid in stale])
    for uid, cluster in rows.items():
        if uid in watches:
            watches[uid].judge_silence()
        elif registry.cluster_is_watchable(cluster.kind):
            watch = _begun(cluster)
            if watch is not None:
                watches[uid] = watch


def _begun(cluster: Cluster) -> Watch | None:
    """None if its adapter cannot be had as it is registered: the inventory says so in its row."""
    try:
        adapter = selectors.cluster_adapter(cluster)
    except (ClusterError, UnknownAdapter) as error:
        log.warning(
            "a cluster cannot be watched", extra={"cluster": cluster.name, "error": str(error)}
        )
        return None
    if not isinstance(adapter, Watchable):
        return None
    log.info("a cluster is watched from now on", extra={"cluster": cluster.name})
    return Watch(cluster, adapter)


def _end(watches: list[Watch]) -> None:
    for watch in watches:
        watch.stopping.set()
    limit = time.monotonic() + _STOP_WITHIN
    for watch in watches:
        watch.join(within=max(0.0, limit - time.monotonic()))


def _terms_of(cluster: Cluster) -> tuple[Any, ...]:
    """All that its adapter is made of."""
    return cluster.kind, cluster.options, bytes(cluster.kubeconfig or b"")


class Watch:
    """One cluster that is followed, in a thread of its own."""

    def __init__(self, cluster: Cluster, adapter: Watchable) -> None:
        self.cluster = cluster
        self.terms = _terms_of(cluster)
        self.stopping = threading.Event()
        self._adapter = adapter
        self._heard_at = time.monotonic()
        self._silent = False
        self._reached = Seldom(every=REACHED_EVERY)
        self._inventory = Seldom(every=INVENTORY_EVERY)
        self._thread = threading.Thread(target=self._run, name=f"watch {cluster.name}", daemon=True)
        self._thread.start()

    @property
    def running(self) -> bool:
        return self._thread.is_alive()

    def join(self, *, within: float) -> None:
        self._thread.join(within)

    def judge_silence(self) -> None:
        """Say in its row that it does not answer; ask for an inventory that was put off."""
        if self._inventory.is_owed():
            self._tell_of_nodes()
        if time.monotonic() - self._heard_at < SILENT_AFTER:
            return
        if not self._silent:
            log.warning("a cluster has fallen silent", extra={"cluster": self.cluster.name})
            self._silent = True
        services.cluster_silent(cluster=self.cluster)

    def _run(self) -> None:
        try:
            self._adapter.watch(
                launches_changed=self._within_database(self._launches_changed),
                nodes_changed=self._within_database(self._nodes_changed),
                alive=self._within_database(self._alive),
                stopping=self.stopping,
            )
        except Exception:
            # The leader's next turn begins anew.
            log.exception("a cluster is not watched any more", extra={"cluster": self.cluster.name})
        finally:
            connections.close_all()

    def _launches_changed(self, names: frozenset[str]) -> None:
        services.launches_tell(names=names)

    def _nodes_changed(self) -> None:
        if self._inventory.is_due():
            self._tell_of_nodes()

    def _tell_of_nodes(self) -> None:
        services.cluster_tell(cluster=self.cluster)

    def _alive(self) -> None:
        self._heard_at = time.monotonic()
        if self._silent:
            # Taking stock of it takes the word of trouble away, if that succeeds.
            self._silent = False
            log.info("a cluster is heard of again", extra={"cluster": self.cluster.name})
            self._tell_of_nodes()
        if self._reached.is_due():
            services.cluster_reached(cluster=self.cluster, at=timezone.now())

    def _within_database(self, call: Callable[..., None]) -> Callable[..., None]:
        """Over a connection that works: the server may have been restarted since the last call."""

        def called(*news: Any) -> None:
            close_old_connections()
            call(*news)

        return called


class Seldom:
    """Something that is done at most once in a while, and not forgotten if it was due in between."""

    def __init__(self, *, every: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._every, self._clock = every, clock
        self._done_at = -every + clock()
        self._owed = False
        self._lock = threading.Lock()

    def is_due(self) -> bool:
        """Whether to do it now; if not, it is owed."""
        with self._lock:
            return self._now(wanted=True)

    def is_owed(self) -> bool:
        """Whether something that was put off is due by now."""
        with self._lock:
            return self._owed and self._now(wanted=False)

    def _now(self, *, wanted: bool) -> bool:
        due = self._clock() - self._done_at >= self._every
        self._owed = not due and (wanted or self._owed)
        if due:
            self._done_at = self._clock()
        return due
