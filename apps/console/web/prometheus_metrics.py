"""``/metrics`` and ``/readyz``: metrics of the product itself, and its readiness."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from http import HTTPStatus

from django.db import Error
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from apps.console.selectors.object_counts import ObjectCounts, current_object_counts
from apps.console.selectors.system_status import installed_versions, waiting_broker_messages
from apps.models.selectors import artifact_store
from apps.monitoring.selectors.self_monitoring import (
    ControllerStatus,
    DiskUsage,
    current_controllers,
    monitored_disks,
)
from apps.quotas.models import CyclePhase
from controlplane.web import health_checks, request_metrics
from controlplane.web.response_cache import TimedCache

CACHE_SECONDS = 5.0


@require_safe
@never_cache
def prometheus_metrics_view(request: HttpRequest) -> HttpResponse:
    """For clients with the token, and for this machine where no jobs run on it; else 403."""
    if not request_metrics.may_read_metrics(request):
        return HttpResponse(
            "send the metrics token as a bearer token: NINEFOLD_METRICS_TOKEN, or var/secrets/metrics_token\n",
            status=HTTPStatus.FORBIDDEN,
            content_type="text/plain; charset=utf-8",
        )
    return HttpResponse(
        request_metrics.metrics_exposition(PRODUCT_METRICS),
        content_type=request_metrics.CONTENT_TYPE,
    )


class ProductMetricsCollector(Collector):
    """Measured on request, at most every :data:`KEPT_SECONDS`."""

    def __init__(self) -> None:
        self.families = TimedCache(lambda: tuple(_metric_families()), seconds=CACHE_SECONDS)

    def collect(self) -> Iterator[Metric]:
        yield from self.families()


PRODUCT_METRICS = ProductMetricsCollector()


def _metric_families() -> Iterator[Metric]:
    about = installed_versions()
    yield _gauge_family(
        "ninefold_build_info",
        "Always 1; the labels are the versions.",
        {(about["Ninefold"], about["Python"]): 1},
        labels=("version", "python"),
    )
    yield from _disk_metrics(monitored_disks())
    yield from _broker_metrics()
    try:
        counts, controllers, phases = (
            current_object_counts(),
            current_controllers(),
            list(CyclePhase.objects.all()),
        )
    except Error:
        yield _gauge_family("ninefold_database_up", _UP, {(): 0})
        return
    yield _gauge_family("ninefold_database_up", _UP, {(): 1})
    yield from _object_count_metrics(counts)
    yield from _controller_metrics(controllers.all)
    yield _scheduling_cycle_metrics(phases)


_UP = "1 while the database answers; what it knows is left out while it does not."


def _disk_metrics(found: tuple[DiskUsage, ...]) -> Iterator[Metric]:
    yield _gauge_family(
        "ninefold_disk_free_bytes",
        "Room left on the disk below a folder.",
        {(disk.name,): disk.free for disk in found},
        labels=("folder",),
    )
    yield _gauge_family(
        "ninefold_disk_size_bytes",
        "Size of the disk below a folder.",
        {(disk.name,): disk.size for disk in found},
        labels=("folder",),
    )


def _broker_metrics() -> Iterator[Metric]:
    waiting = waiting_broker_messages().messages
    yield _gauge_family(
        "ninefold_broker_up",
        "1 while the broker answers.",
        {(): 0 if waiting is None else 1},
    )
    yield _gauge_family(
        "ninefold_broker_messages",
        "Messages that no worker has taken.",
        {(queue,): amount for queue, amount in (waiting or {}).items()},
        labels=("queue",),
    )


def _object_count_metrics(counts: ObjectCounts) -> Iterator[Metric]:
    for kind, tally in counts.by_state.items():
        yield _gauge_family(
            f"ninefold_{kind}", f"All {kind} by their state.", tally, labels=("state",)
        )
    yield _gauge_family(
        "ninefold_cards", "Cards by chip and state.", counts.cards, labels=("chip", "state")
    )
    yield _gauge_family(
        "ninefold_queue_waiting_claims",
        "Claims that wait for cards, by queue.",
        counts.waiting_claims,
        labels=("queue",),
    )
    yield _gauge_family(
        "ninefold_outbox_messages", "News not handed on yet.", {(): counts.outbox.messages}
    )
    yield _gauge_family(
        "ninefold_outbox_oldest_seconds",
        "Age of the oldest news not handed on yet.",
        {(): counts.outbox.age.total_seconds()},
    )
    yield _gauge_family(
        "ninefold_outbox_unheard_messages",
        "Those that are set aside because nobody hears their topic.",
        {(topic,): amount for topic, amount in counts.outbox.unsubscribed.items()},
        labels=("topic",),
    )
    yield _gauge_family(
        "ninefold_cluster_silence_seconds",
        "Since the connection that watches a cluster last proved itself.",
        counts.cluster_silence,
        labels=("cluster",),
    )
    yield _gauge_family(
        "ninefold_database_connections",
        "Connections to the product's database by what they do.",
        counts.connections,
        labels=("state",),
    )


def _controller_metrics(controllers: tuple[ControllerStatus, ...]) -> Iterator[Metric]:
    started = [controller for controller in controllers if controller.lag is not None]
    yield _gauge_family(
        "ninefold_controller_lag_seconds",
        "Time since the last successful run.",
        {
            (controller.name,): controller.lag.total_seconds()
            for controller in started
            if controller.lag is not None
        },
        labels=("controller",),
    )
    yield _gauge_family(
        "ninefold_controller_interval_seconds",
        "Configured interval between runs.",
        {(controller.name,): controller.interval.total_seconds() for controller in controllers},
        labels=("controller",),
    )
    yield _gauge_family(
        "ninefold_controller_unhealthy",
        "1 while the controller is late, failing or stuck.",
        {(controller.name,): int(controller.unhealthy) for controller in controllers},
        labels=("controller",),
    )
    yield _gauge_family(
        "ninefold_controller_last_run_duration_seconds",
        "Duration of the last run.",
        {(one.name,): one.last_seconds for one in started if one.last_seconds is not None},
        labels=("controller",),
    )
    runs = CounterMetricFamily(
        "ninefold_controller_runs_total",
        "Completed runs, by outcome.",
        labels=("controller", "outcome"),
    )
    seconds = CounterMetricFamily(
        "ninefold_controller_run_seconds_total",
        "Total duration of all runs.",
        labels=("controller",),
    )
    for controller in started:
        runs.add_metric((controller.name, "good"), controller.runs - controller.failed_runs)
        runs.add_metric((controller.name, "bad"), controller.failed_runs)
        seconds.add_metric((controller.name,), controller.seconds)
    yield runs
    yield seconds


def _scheduling_cycle_metrics(phases: list[CyclePhase]) -> Metric:
    family = HistogramMetricFamily(
        "ninefold_cycle_seconds", "Of scheduling cycles, by their phase.", labels=("phase",)
    )
    for each in phases:
        buckets = [(str(bound), count) for bound, count in each.buckets]
        family.add_metric((each.name,), [*buckets, ("+Inf", each.cycles)], each.seconds)
    return family


def _gauge_family(
    name: str,
    meaning: str,
    values: Mapping[tuple[str, ...], float],
    *,
    labels: tuple[str, ...] = (),
) -> Metric:
    family = GaugeMetricFamily(name, meaning, labels=labels)
    for key, value in values.items():
        family.add_metric(key, value)
    return family


READINESS = health_checks.Readiness(
    {
        "database": health_checks.check_database,
        "migrations": health_checks.check_migrations,
        "broker": health_checks.check_broker,
        "artifacts": lambda: health_checks.check_artifact_store(artifact_store()),
        "encryption_key": health_checks.check_encryption_key,
    }
)


@require_safe
@never_cache
def readyz(request: HttpRequest) -> JsonResponse:
    """200 if the product can work, else 503; with the state of each component, without secrets."""
    return READINESS.answer()
