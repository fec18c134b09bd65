"""The parts that the product is made of, and whether each does its work."""

from __future__ import annotations

import platform
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from importlib.metadata import version
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connection

from apps.fleet.models import Cluster
from apps.fleet.services.cluster_status import LEASE
from apps.models.selectors import artifact_store
from apps.monitoring.selectors.agents import agents_heard
from apps.monitoring.selectors.loops import Loops
from apps.serving import selectors as serving
from apps.serving.models import Gateway
from controlplane.domain.loops import Culprit, culprit
from controlplane.outbox import broker, messages
from controlplane.persistence.leases import holder_of
from controlplane.ports import registry

#: A gateway that has been gone for longer is no part of the product any more.
GATEWAY_FORGOTTEN = timedelta(days=1)
#: How long a live gateway may take to fetch what has been published.
SNAPSHOT_PATIENCE = timedelta(seconds=30)
CLUSTER_SILENCE = timedelta(seconds=90)
OUTBOX_PATIENCE = timedelta(seconds=30)
#: A disk with less than this share and less than so many bytes free needs somebody.
DISK_SHARE, DISK_BYTES = 0.1, 10 * 1024**3
#: With less, the next upload may fail.
DISK_FULL_BYTES = 512 * 1024**2


class Condition(StrEnum):
    WELL = "well"
    #: It works, and somebody should look at it.
    TROUBLED = "troubled"
    DOWN = "down"
    UNKNOWN = "unknown"


class Kind(StrEnum):
    WEB = "web"
    WORKER = "worker"
    BEAT = "beat"
    DATABASE = "database"
    BROKER = "broker"
    OUTBOX = "outbox"
    GATEWAY = "gateway"
    WATCHER = "watcher"
    CLUSTER = "cluster"
    AGENTS = "agents"
    DISK = "disk"


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    kind: Kind
    condition: Condition
    #: Of one among several of its kind, else empty.
    name: str = ""
    #: What was found out about it, by name: figures, and words that others said.
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """Messages that no worker has taken, by queue; ``refusal`` says why nobody can count them."""

    messages: Mapping[str, int] | None
    refusal: str = ""

    @property
    def calls(self) -> int | None:
        """Those of the beat."""
        return None if self.messages is None else self.messages["beat"]


def broker_waiting() -> Waiting:
    """What waits in the broker, or that it does not answer."""
    try:
        return Waiting(messages=broker.queue_depths())
    except broker.BrokerUnreachable as silent:
        return Waiting(messages=None, refusal=str(silent))


def components(loops: Loops, *, waiting: Waiting) -> tuple[Component, ...]:
    """Every part, those that all others stand on first."""
    clusters = list(Cluster.objects.all())
    return (
        _web(),
        *_processes(loops, waiting=waiting),
        _database(),
        _broker(waiting),
        _outbox(),
        *_gateways(at=loops.at),
        *_watcher(clusters, at=loops.at),
        *_clusters(clusters, at=loops.at),
        *_agents(at=loops.at),
        *_disks(),
    )


def _web() -> Component:
    return Component(
        kind=Kind.WEB, condition=Condition.WELL, facts={"version": versions()["Ninefold"]}
    )


_BLAMED: Mapping[Culprit, tuple[Condition, Condition]] = {
    #: Whose fault it is → the conditions of worker and beat.
    Culprit.NONE: (Condition.WELL, Condition.WELL),
    Culprit.LOOPS: (Condition.TROUBLED, Condition.WELL),
    Culprit.WORKER: (Condition.DOWN, Condition.WELL),
    # Without its calls nobody sees whether the worker would take any.
    Culprit.BEAT: (Condition.UNKNOWN, Condition.DOWN),
    Culprit.UNKNOWN: (Condition.UNKNOWN, Condition.UNKNOWN),
}


def _processes(loops: Loops, *, waiting: Waiting) -> Iterator[Component]:
    """Worker and beat, judged by what they do: neither answers questions."""
    blamed = culprit(
        ((loop.interval, loop.times) for loop in loops.all), waiting=waiting.calls, at=loops.at
    )
    worker, beat = _BLAMED[blamed]
    turned = [loop.lag for loop in loops.all if loop.lag is not None]
    facts = {
        "quiet_seconds": min(turned).total_seconds() if turned else None,
        "troubled_loops": len(loops.troubled),
        "waiting_calls": waiting.calls,
    }
    yield Component(kind=Kind.WORKER, condition=worker, facts=facts)
    yield Component(kind=Kind.BEAT, condition=beat, facts=facts)


def _database() -> Component:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*), current_setting('max_connections')::int,"
            " pg_database_size(current_database()), current_setting('server_version')"
            " FROM pg_stat_activity"
        )
        used, most, size, release = cursor.fetchone()
    crowded = used > most * 0.9
    return Component(
        kind=Kind.DATABASE,
        condition=Condition.TROUBLED if crowded else Condition.WELL,
        facts={"connections": used, "most_connections": most, "bytes": size, "version": release},
    )


def _broker(waiting: Waiting) -> Component:
    if waiting.messages is None:
        return Component(
            kind=Kind.BROKER, condition=Condition.DOWN, facts={"refusal": waiting.refusal}
        )
    return Component(
        kind=Kind.BROKER,
        condition=Condition.WELL,
        facts={"messages": sum(waiting.messages.values())},
    )


def _outbox() -> Component:
    backlog = messages.backlog()
    troubled = backlog.unsubscribed or backlog.age > OUTBOX_PATIENCE
    return Component(
        kind=Kind.OUTBOX,
        condition=Condition.TROUBLED if troubled else Condition.WELL,
        facts={
            "messages": backlog.messages,
            "age_seconds": backlog.age.total_seconds(),
            "unheard": backlog.unsubscribed,
        },
    )


def _gateways(*, at: datetime) -> Iterator[Component]:
    newest = serving.latest_snapshot()
    for gateway in Gateway.objects.filter(last_seen_at__gt=at - GATEWAY_FORGOTTEN).order_by("name"):
        silent = gateway.last_seen_at <= at - serving.GATEWAY_HEARTBEAT_TIMEOUT
        behind = (
            newest is not None
            and gateway.version < newest.version
            and at - newest.issued_at > SNAPSHOT_PATIENCE
        )
        condition = Condition.TROUBLED if behind else Condition.WELL
        yield Component(
            kind=Kind.GATEWAY,
            name=gateway.name,
            condition=Condition.DOWN if silent else condition,
            facts={
                "seen_at": gateway.last_seen_at,
                "snapshot": gateway.version,
                "newest_snapshot": newest.version if newest else None,
                "newest_snapshot_at": newest.issued_at if newest else None,
            },
        )


def _watcher(clusters: Iterable[Cluster], *, at: datetime) -> Iterator[Component]:
    """The process that follows clusters; no part of a product whose clusters do not speak by themselves."""
    speaking = {
        kind: registry.cluster_is_watchable(kind) for kind in {one.kind for one in clusters}
    }
    followed = [cluster for cluster in clusters if speaking[cluster.kind]]
    if not followed:
        return
    silent = [
        cluster.name
        for cluster in followed
        if at - (cluster.reachable_at or cluster.created_at) > CLUSTER_SILENCE
    ]
    holder = holder_of(LEASE)
    condition = Condition.TROUBLED if silent else Condition.WELL
    yield Component(
        kind=Kind.WATCHER,
        condition=condition if holder else Condition.DOWN,
        facts={"holder": holder, "clusters": len(followed), "silent": silent},
    )


def _clusters(clusters: Iterable[Cluster], *, at: datetime) -> Iterator[Component]:
    for cluster in clusters:
        seen = cluster.last_seen_at
        if cluster.trouble:
            condition = Condition.DOWN
        elif seen is None or at - seen > CLUSTER_SILENCE:
            condition = Condition.UNKNOWN
        else:
            condition = Condition.WELL
        yield Component(
            kind=Kind.CLUSTER,
            name=cluster.name,
            condition=condition,
            facts={"seen_at": seen, "trouble": cluster.trouble},
        )


def _agents(*, at: datetime) -> Iterator[Component]:
    """All together; no part of a product that has no node with a token."""
    agents = agents_heard(at=at)
    if not agents.nodes:
        return
    silent = agents.silent > 0
    oldest = at - agents.oldest if agents.oldest is not None else None
    yield Component(
        kind=Kind.AGENTS,
        condition=Condition.TROUBLED if silent else Condition.WELL,
        facts={
            "nodes": agents.nodes,
            "heard": agents.heard,
            "silent": agents.silent,
            "unseen": agents.unseen,
            "oldest_seconds": max(0.0, oldest.total_seconds()) if oldest is not None else None,
        },
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    """The disk below one of our folders, in bytes."""

    name: str
    free: int
    size: int


def disks() -> tuple[Disk, ...]:
    """Of the home and of the artifact store; a store without a folder has no disk of ours."""
    folders = {"home": Path(settings.NINEFOLD_HOME), "artifacts": artifact_folder()}
    return tuple(_disk(name, folder) for name, folder in folders.items() if folder is not None)


def artifact_folder() -> Path | None:
    root = getattr(artifact_store(), "root", None)
    return root if isinstance(root, Path) else None


def _disk(name: str, folder: Path) -> Disk:
    there = next(path for path in (folder, *folder.parents) if path.exists())
    usage = shutil.disk_usage(there)
    return Disk(name=name, free=usage.free, size=usage.total)


def _disks() -> Iterator[Component]:
    for disk in disks():
        low = disk.free < min(DISK_BYTES, disk.size * DISK_SHARE)
        condition = Condition.TROUBLED if low else Condition.WELL
        yield Component(
            kind=Kind.DISK,
            name=disk.name,
            condition=Condition.DOWN if disk.free < DISK_FULL_BYTES else condition,
            facts={"free_bytes": disk.free, "bytes": disk.size},
        )


def versions() -> dict[str, str]:
    """Of the product and of the libraries that it stands on."""
    return {
        "Ninefold": version("ninefold"),
        "Python": platform.python_version(),
        "Django": version("django"),
        "Celery": version("celery"),
    }
