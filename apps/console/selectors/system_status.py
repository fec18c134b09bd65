"""The components of the product, the condition of each, and the overall status."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from importlib.metadata import version
from typing import Any

from typing_extensions import TypedDict

from apps.accounts import selectors as accounts
from apps.accounts.models import User
from apps.fleet.models import Cluster
from apps.fleet.services.clusters import LEASE
from apps.monitoring.selectors.self_monitoring import (
    ControllerStatus,
    ControllerStatuses,
    current_controllers,
    monitored_disks,
)
from apps.serving import selectors as serving
from apps.serving.models import Gateway
from apps.telemetry.selectors import agent_counts
from controlplane.domain.health.controllers import StalledComponent, find_stalled_component
from controlplane.outbox import broker, messages
from controlplane.persistence.leases import lease_holder
from controlplane.persistence.transactions import fetch_row
from controlplane.ports import adapter_registry

#: A gateway that has been gone for longer is no part of the product any more.
GATEWAY_FORGOTTEN = timedelta(days=1)
#: Time within which a live gateway should fetch a new snapshot.
SNAPSHOT_PATIENCE = timedelta(seconds=30)
CLUSTER_SILENCE = timedelta(seconds=90)
OUTBOX_PATIENCE = timedelta(seconds=30)
#: Below this share and this number of free bytes, a disk requires attention.
DISK_SHARE, DISK_BYTES = 0.1, 10 * 1024**3
#: With less, the next upload may fail.
DISK_FULL_BYTES = 512 * 1024**2


class ComponentCondition(StrEnum):
    WELL = "well"
    #: It works, but requires attention.
    DEGRADED = "degraded"
    DOWN = "down"
    UNKNOWN = "unknown"


class ComponentKind(StrEnum):
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


class WebServerFacts(TypedDict):
    version: str


class QueueProcessFacts(TypedDict):
    """Of the worker and of the beat."""

    #: Seconds since the last run of any controller; None: none has run.
    quiet_seconds: float | None
    unhealthy_controllers: int
    #: Calls of the beat in the broker; None: they cannot be counted.
    waiting_calls: int | None


class DatabaseFacts(TypedDict):
    connections: int
    most_connections: int
    bytes: int
    version: str


class BrokerFacts(TypedDict, total=False):
    """Messages, or why they cannot be counted."""

    messages: int
    refusal: str


class OutboxFacts(TypedDict):
    messages: int
    age_seconds: float
    #: Messages without a subscriber, by topic.
    unsubscribed: Mapping[str, int]


class GatewayFacts(TypedDict):
    seen_at: datetime
    snapshot: int
    newest_snapshot: int | None
    newest_snapshot_at: datetime | None


class WatcherFacts(TypedDict):
    #: The process that has the lease.
    holder: str | None
    clusters: int
    #: Names of clusters without a heartbeat.
    stale: list[str]


class ClusterFacts(TypedDict):
    seen_at: datetime | None
    error: str


class AgentsFacts(TypedDict):
    nodes: int
    reporting: int
    stale: int
    unseen: int
    oldest_seconds: float | None


class DiskFacts(TypedDict):
    free_bytes: int
    bytes: int


#: What is measured of a component of each kind.
COMPONENT_FACTS: Mapping[ComponentKind, Any] = {
    ComponentKind.WEB: WebServerFacts,
    ComponentKind.WORKER: QueueProcessFacts,
    ComponentKind.BEAT: QueueProcessFacts,
    ComponentKind.DATABASE: DatabaseFacts,
    ComponentKind.BROKER: BrokerFacts,
    ComponentKind.OUTBOX: OutboxFacts,
    ComponentKind.GATEWAY: GatewayFacts,
    ComponentKind.WATCHER: WatcherFacts,
    ComponentKind.CLUSTER: ClusterFacts,
    ComponentKind.AGENTS: AgentsFacts,
    ComponentKind.DISK: DiskFacts,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductComponent:
    kind: ComponentKind
    condition: ComponentCondition
    #: Of one among several of its kind, else empty.
    name: str = ""
    #: Measured values and foreign texts, by name; of the type that ``COMPONENT_FACTS`` has for the kind.
    facts: Mapping[str, Any] = field(default_factory=dict)


def _condition(*, down: object = False, degraded: object = False) -> ComponentCondition:
    if down:
        return ComponentCondition.DOWN
    return ComponentCondition.DEGRADED if degraded else ComponentCondition.WELL


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerQueues:
    """Messages in the broker, by queue; ``refusal`` says why they cannot be counted."""

    messages: Mapping[str, int] | None
    refusal: str = ""

    @property
    def calls(self) -> int | None:
        """Those of the beat."""
        return None if self.messages is None else self.messages["beat"]


def waiting_broker_messages() -> BrokerQueues:
    """Number of messages in the broker, or that it does not respond."""
    try:
        return BrokerQueues(messages=broker.celery_queue_depths())
    except broker.BrokerUnreachable as silent:
        return BrokerQueues(messages=None, refusal=str(silent))


def status_components(
    controllers: ControllerStatuses, *, waiting: BrokerQueues
) -> tuple[ProductComponent, ...]:
    """All components, those that others depend on first."""
    clusters = list(Cluster.objects.all())
    return (
        _web_server_component(),
        *_worker_and_beat_components(controllers, waiting=waiting),
        _database_component(),
        _broker_component(waiting),
        _outbox_component(),
        *_gateway_components(at=controllers.at),
        *_cluster_watch_component(clusters, at=controllers.at),
        *_cluster_components(clusters, at=controllers.at),
        *_agent_component(at=controllers.at),
        *_disk_components(),
    )


def _web_server_component() -> ProductComponent:
    return ProductComponent(
        kind=ComponentKind.WEB,
        condition=ComponentCondition.WELL,
        facts=WebServerFacts(version=installed_versions()["Ninefold"]),
    )


_BLAMED: Mapping[StalledComponent, tuple[ComponentCondition, ComponentCondition]] = {
    #: Whose fault it is → the conditions of worker and beat.
    StalledComponent.NONE: (ComponentCondition.WELL, ComponentCondition.WELL),
    StalledComponent.CONTROLLERS: (ComponentCondition.DEGRADED, ComponentCondition.WELL),
    StalledComponent.WORKER: (ComponentCondition.DOWN, ComponentCondition.WELL),
    # Without them it is unknown whether the worker processes messages.
    StalledComponent.BEAT: (ComponentCondition.UNKNOWN, ComponentCondition.DOWN),
    StalledComponent.UNKNOWN: (ComponentCondition.UNKNOWN, ComponentCondition.UNKNOWN),
}


def _worker_and_beat_components(
    controllers: ControllerStatuses, *, waiting: BrokerQueues
) -> Iterator[ProductComponent]:
    """Worker and beat, evaluated by their effects: neither has an endpoint."""
    blamed = find_stalled_component(
        ((controller.interval, controller.times) for controller in controllers.all),
        waiting=waiting.calls,
        at=controllers.at,
    )
    worker, beat = _BLAMED[blamed]
    turned = [controller.lag for controller in controllers.all if controller.lag is not None]
    facts = QueueProcessFacts(
        quiet_seconds=min(turned).total_seconds() if turned else None,
        unhealthy_controllers=len(controllers.unhealthy),
        waiting_calls=waiting.calls,
    )
    yield ProductComponent(kind=ComponentKind.WORKER, condition=worker, facts=facts)
    yield ProductComponent(kind=ComponentKind.BEAT, condition=beat, facts=facts)


def _database_component() -> ProductComponent:
    used, most, size, release = fetch_row(
        "SELECT count(*), current_setting('max_connections')::int,"
        " pg_database_size(current_database()), current_setting('server_version')"
        " FROM pg_stat_activity"
    )
    return ProductComponent(
        kind=ComponentKind.DATABASE,
        condition=_condition(degraded=used > most * 0.9),
        facts=DatabaseFacts(connections=used, most_connections=most, bytes=size, version=release),
    )


def _broker_component(waiting: BrokerQueues) -> ProductComponent:
    return ProductComponent(
        kind=ComponentKind.BROKER,
        condition=_condition(down=waiting.messages is None),
        facts=BrokerFacts(refusal=waiting.refusal)
        if waiting.messages is None
        else BrokerFacts(messages=sum(waiting.messages.values())),
    )


def _outbox_component() -> ProductComponent:
    backlog = messages.outbox_backlog()
    return ProductComponent(
        kind=ComponentKind.OUTBOX,
        condition=_condition(degraded=backlog.unsubscribed or backlog.age > OUTBOX_PATIENCE),
        facts=OutboxFacts(
            messages=backlog.messages,
            age_seconds=backlog.age.total_seconds(),
            unsubscribed=backlog.unsubscribed,
        ),
    )


def _gateway_components(*, at: datetime) -> Iterator[ProductComponent]:
    newest = serving.latest_gateway_snapshot()
    for gateway in Gateway.objects.filter(last_seen_at__gt=at - GATEWAY_FORGOTTEN).order_by("name"):
        stale = gateway.last_seen_at <= at - serving.GATEWAY_HEARTBEAT_TIMEOUT
        behind = (
            newest is not None
            and gateway.version < newest.version
            and at - newest.issued_at > SNAPSHOT_PATIENCE
        )
        yield ProductComponent(
            kind=ComponentKind.GATEWAY,
            name=gateway.name,
            condition=_condition(down=stale, degraded=behind),
            facts=GatewayFacts(
                seen_at=gateway.last_seen_at,
                snapshot=gateway.version,
                newest_snapshot=newest.version if newest else None,
                newest_snapshot_at=newest.issued_at if newest else None,
            ),
        )


def _cluster_watch_component(
    clusters: Iterable[Cluster], *, at: datetime
) -> Iterator[ProductComponent]:
    """The process that follows clusters; no part of a product whose clusters do not speak by themselves."""
    speaking = {
        kind: adapter_registry.cluster_is_watchable(kind) for kind in {one.kind for one in clusters}
    }
    followed = [cluster for cluster in clusters if speaking[cluster.kind]]
    if not followed:
        return
    stale = [
        cluster.name
        for cluster in followed
        if at - (cluster.reachable_at or cluster.created_at) > CLUSTER_SILENCE
    ]
    holder = lease_holder(LEASE)
    yield ProductComponent(
        kind=ComponentKind.WATCHER,
        condition=_condition(down=not holder, degraded=stale),
        facts=WatcherFacts(holder=holder, clusters=len(followed), stale=stale),
    )


def _cluster_components(clusters: Iterable[Cluster], *, at: datetime) -> Iterator[ProductComponent]:
    for cluster in clusters:
        seen = cluster.last_seen_at
        if cluster.error:
            condition = ComponentCondition.DOWN
        elif seen is None or at - seen > CLUSTER_SILENCE:
            condition = ComponentCondition.UNKNOWN
        else:
            condition = ComponentCondition.WELL
        yield ProductComponent(
            kind=ComponentKind.CLUSTER,
            name=cluster.name,
            condition=condition,
            facts=ClusterFacts(seen_at=seen, error=cluster.error),
        )


def _agent_component(*, at: datetime) -> Iterator[ProductComponent]:
    """All together; no part of a product that has no node with a token."""
    agents = agent_counts(at=at)
    if not agents.nodes:
        return
    oldest = at - agents.oldest if agents.oldest is not None else None
    yield ProductComponent(
        kind=ComponentKind.AGENTS,
        condition=_condition(degraded=agents.stale),
        facts=AgentsFacts(
            nodes=agents.nodes,
            reporting=agents.reporting,
            stale=agents.stale,
            unseen=agents.unseen,
            oldest_seconds=max(0.0, oldest.total_seconds()) if oldest is not None else None,
        ),
    )


def _disk_components() -> Iterator[ProductComponent]:
    for disk in monitored_disks():
        low = disk.free < min(DISK_BYTES, disk.size * DISK_SHARE)
        yield ProductComponent(
            kind=ComponentKind.DISK,
            name=disk.name,
            condition=_condition(down=disk.free < DISK_FULL_BYTES, degraded=low),
            facts=DiskFacts(free_bytes=disk.free, bytes=disk.size),
        )


def installed_versions() -> dict[str, str]:
    """Versions of Ninefold and of the libraries that it depends on."""
    return {
        "Ninefold": version("ninefold"),
        "Python": platform.python_version(),
        "Django": version("django"),
        "Celery": version("celery"),
    }


ERRORS_SHOWN_FOR = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentError:
    """A recent error, in the words of the component that recorded it."""

    #: ``controller`` or ``cluster``, and which.
    kind: str
    name: str
    text: str
    at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductStatus:
    at: datetime
    components: tuple[ProductComponent, ...]
    controllers: tuple[ControllerStatus, ...]
    errors: tuple[RecentError, ...]
    versions: dict[str, str]

    @property
    def condition(self) -> ComponentCondition:
        """The worst of all components and controllers."""
        found = {component.condition for component in self.components}
        if any(controller.unhealthy for controller in self.controllers):
            found.add(ComponentCondition.DEGRADED)
        worst_first = (
            ComponentCondition.DOWN,
            ComponentCondition.DEGRADED,
            ComponentCondition.UNKNOWN,
            ComponentCondition.WELL,
        )
        return next(condition for condition in worst_first if condition in found)


def product_status() -> ProductStatus:
    """All components, all controllers, and errors within :data:`ERRORS_SHOWN_FOR`.

    :raises django.db.Error: if the database does not respond.
    """
    controllers = current_controllers()
    parts = status_components(controllers, waiting=waiting_broker_messages())
    failed = [
        RecentError(
            kind="controller", name=controller.name, text=controller.error, at=controller.failed_at
        )
        for controller in controllers.all
        if controller.failed_at is not None
        and controllers.at - controller.failed_at < ERRORS_SHOWN_FOR
    ]
    failed.sort(key=lambda error: error.at or controllers.at, reverse=True)
    cluster_errors = [
        RecentError(kind="cluster", name=part.name, text=part.facts["error"], at=None)
        for part in parts
        if part.kind is ComponentKind.CLUSTER and part.facts["error"]
    ]
    return ProductStatus(
        at=controllers.at,
        components=parts,
        controllers=controllers.all,
        errors=(*cluster_errors, *failed),
        versions=installed_versions(),
    )


def can_view_product_status(user: accounts.RequestUser) -> bool:
    """Whether they administer something or operate the fleet: the state of the product is for them."""
    return isinstance(user, User) and user.is_active and (user.is_staff or user.is_superuser)


def require_permission_to_view_product_status(user: accounts.RequestUser) -> None:
    """:raises PermissionRefused: if it is not."""
    if not can_view_product_status(user):
        raise accounts.PermissionRefused(
            "permission.system_status.role_missing",
            "the system status is for operators, queue admins and administrators; "
            "you have none of these roles. An administrator of the company can "
            "change that.",
        )
