"""Queries on metric sources and agents, the adapters that read sources, and metrics of a card over time.

A chart gets as many points as it can show. Short ranges come from what was measured, cut into steps and
averaged by the database; long ones from the hourly sums. A gap stays one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

from django.conf import settings
from django.db import connection
from django.db.models import (
    Aggregate,
    Avg,
    Count,
    DateTimeField,
    DurationField,
    F,
    Func,
    Max,
    Min,
    Model,
    Q,
    QuerySet,
    Value,
)

from apps.accounts.selectors import RequestUser
from apps.accounts.services.personal_tokens import token_digest
from apps.fleet.models import Card, Cluster, Node
from apps.fleet.selectors import is_fleet_operator
from apps.telemetry.models import CardHistory, CardHour, CardMetrics, NodeToken, Source
from controlplane.domain.telemetry.metrics import MEASURES, Metric
from controlplane.persistence.encryption import DecryptionFailed, decrypt
from controlplane.persistence.transactions import fetch_row
from controlplane.ports import adapter_registry
from controlplane.ports.adapter_options import AdapterOptions
from controlplane.ports.telemetry import TelemetryError, TelemetryFailed, TelemetrySource

#: Older metrics do not describe the current state.
FRESH = timedelta(seconds=60)
#: Percent of utilization from which on a card is at work, and below which it is idle.
BUSY, IDLE = 20.0, 5.0
#: A source that has missed so many readings is late.
MISSED_READINGS = 3
Row = TypeVar("Row", bound=Model)
#: The kind of sources that are not read: their agents come by themselves.
PUSH = "push"
#: Timeout of one request in seconds.
PATIENCE = 4.0
#: Missed scrapes after which a source or card is stale, and the minimum in seconds.
MISSED, SHORTEST_SILENCE = 3, timedelta(seconds=15)

#: Written as SQL, since building the query takes longer than executing it.
_KNOWN = """
SELECT token.id, token.agent::text, node.id, node.name, node.locality::text, cluster.id, cluster.uid, cluster.name
  FROM telemetry_nodetoken AS token
  JOIN fleet_node AS node ON node.id = token.node_id
  JOIN fleet_cluster AS cluster ON cluster.id = node.cluster_id
 WHERE token.digest = %s AND token.revoked_at IS NULL AND node.removed_at IS NULL
"""


def metric_sources_visible(user: RequestUser) -> QuerySet[Source]:
    """All sources for operators of the fleet, as their URLs reveal the company's network; else none."""
    rows = Source.objects.select_related("cluster")
    return rows if is_fleet_operator(user) else rows.none()


def node_tokens_visible(user: RequestUser) -> QuerySet[NodeToken]:
    """All tokens for operators of the fleet, newest first; else none."""
    rows = NodeToken.objects.select_related("node__cluster").order_by("-id")
    return rows if is_fleet_operator(user) else rows.none()


def find_valid_node_token(text: str) -> NodeToken | None:
    """The valid token with that text, its node and its cluster; None if there is none.

    Each batch needs it: only the columns that a batch needs are loaded.
    """
    row = fetch_row(_KNOWN, [token_digest(text)])
    if row is None:
        return None
    token, agent, node, name, locality, cluster, uid, named = row
    found = _partial_instance(NodeToken, id=token, agent=json.loads(agent), node_id=node)
    found.node = _partial_instance(
        Node, id=node, name=name, locality=json.loads(locality), cluster_id=cluster
    )
    found.node.cluster = _partial_instance(Cluster, id=cluster, uid=uid, name=named)
    return found


def _partial_instance(model: type[Row], **columns: object) -> Row:
    """An instance as ``only`` returns it: other columns are loaded on access."""
    names = [each.attname for each in model._meta.concrete_fields if each.attname in columns]
    return model.from_db(connection.alias, names, [columns[name] for name in names])


def readable_source_kinds() -> tuple[str, ...]:
    """Kinds of sources that users can create: those that an installed package reads, without the tests' fake."""
    return tuple(kind for kind in adapter_registry.telemetry_kinds() if kind != "fake")


def due_metric_sources(*, at: datetime) -> list[int]:
    """Primary keys of sources that are due to be read."""
    rows = Source.objects.filter(enabled=True, cluster__removed_at=None).exclude(kind=PUSH)
    # The beat is not exact to the millisecond: half a second early is better than a whole interval late.
    return [
        pk
        for pk, every, tried_at in rows.values_list("pk", "every", "tried_at")
        if tried_at is None or at - tried_at >= timedelta(seconds=every - 0.5)
    ]


def metric_source_heartbeat_timeout(source: Source) -> timedelta:
    """Time without metrics after which one of its cards is stale."""
    return max(MISSED * timedelta(seconds=source.every), SHORTEST_SILENCE)


def source_adapter(source: Source) -> TelemetrySource:
    """What reads it, kept for as long as its options stay the same.

    :raises TelemetryError: if its kind, an option or its token cannot be used.
    """
    options = json.dumps(source.options, sort_keys=True)
    return _cached_adapter(source.kind, options, bytes(source.credential or b""))


@lru_cache(maxsize=64)
def _cached_adapter(kind: str, options: str, sealed: bytes) -> TelemetrySource:
    try:
        token = decrypt(sealed).decode() if sealed else ""
    except DecryptionFailed as error:
        raise TelemetryFailed(
            "telemetry_source.token.undecryptable",
            "the token of the source cannot be decrypted: {error}",
            error=str(error),
        ) from error
    return telemetry_adapter_for_kind(kind=kind, options=json.loads(options), token=token)


def metric_source_option_models() -> Mapping[str, type]:
    """By kind of source, the model of its options; a source of agents has none."""
    models = {
        kind: adapter_registry.telemetry_options(kind).model(f"{kind.title()}SourceOptions")
        for kind in adapter_registry.telemetry_kinds()
        if kind != adapter_registry.TEST_ADAPTER
    }
    return {**models, PUSH: AdapterOptions.none().model(f"{PUSH.title()}SourceOptions")}


def telemetry_adapter_for_kind(
    *, kind: str, options: dict[str, Any], token: str
) -> TelemetrySource:
    """A new adapter; nothing is read yet.

    :raises TelemetryError: if the kind, an option or the token cannot be used.
    """
    calls = adapter_registry.outbound_http_client(settings.NINEFOLD_TELEMETRY, "", seconds=PATIENCE)
    try:
        return adapter_registry.create_telemetry_adapter(kind, options, outbound=calls, token=token)
    except adapter_registry.AdapterNotFound as unknown:
        raise TelemetryError(str(unknown)) from unknown


#: An agent without a push for longer is stale: its metrics do not describe the current state.
STALE_AFTER = timedelta(seconds=60)
#: Nodes that their cluster no longer lists.
GONE = Q(node__last_seen_at__lt=F("node__cluster__last_seen_at"))


class AgentState(StrEnum):
    """How a node's agent does, by its token."""

    WELL = "well"
    STALE = "silent"
    #: The token was never used.
    UNSEEN = "unseen"
    #: It is stale, and its cluster no longer lists the node.
    GONE = "gone"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCounts:
    """Nodes with a valid token, by state of their agent; without stale agents of removed nodes."""

    nodes: int = 0
    reporting: int = 0
    #: None of their tokens was ever used.
    unseen: int = 0
    #: Last push of the agent that has been stale for the longest; None if none ever pushed.
    oldest: datetime | None = None

    @property
    def stale(self) -> int:
        """Nodes whose agent has pushed before, but not lately."""
        return self.nodes - self.reporting - self.unseen


def agent_counts(*, at: datetime, cluster: Cluster | None = None) -> AgentCounts:
    """The agents of all nodes, or of one cluster's, each by its newest token, in one statement."""
    good = NodeToken.objects.filter(
        revoked_at=None, node__removed_at=None, node__cluster__removed_at=None
    )
    if cluster is not None:
        good = good.filter(node__cluster=cluster)
    there = good.filter(~GONE | Q(used_at__gte=at - STALE_AFTER))
    by_node = there.order_by().values("node").annotate(last=Max("used_at"))
    found = by_node.aggregate(
        nodes=Count("node"),
        reporting=Count("node", filter=Q(last__gte=at - STALE_AFTER)),
        unseen=Count("node", filter=Q(last=None)),
        oldest=Min("last"),
    )
    return AgentCounts(**found)


def agent_state(token: NodeToken, *, at: datetime) -> AgentState:
    """How the agent does that has this token, loaded with its node and cluster."""
    if token.revoked_at is not None:
        return AgentState.REVOKED
    if token.used_at is not None and token.used_at >= at - STALE_AFTER:
        return AgentState.WELL
    if _is_node_gone(token.node):
        return AgentState.GONE
    return AgentState.UNSEEN if token.used_at is None else AgentState.STALE


def _is_node_gone(node: Node) -> bool:
    """As described by ``GONE``."""
    listed, asked = node.last_seen_at, node.cluster.last_seen_at
    return listed is not None and asked is not None and listed < asked


def node_metrics(node: Node) -> Sequence[CardMetrics]:
    """Latest metrics of each card that was ever measured."""
    return list(CardMetrics.objects.filter(card__node=node, card__removed_at=None))


class SourceHealth(StrEnum):
    """State of a metric source."""

    WELL = "well"
    #: The last scrape failed, or so many cards are stale that the source is the likely cause.
    DEGRADED = "degraded"
    #: It has missed several readings.
    LATE = "late"
    #: Nothing was ever read.
    UNSEEN = "unseen"
    PAUSED = "paused"


class SourceStatus(NamedTuple):
    source: Source
    how: SourceHealth
    #: Cards with recent metrics from it.
    measured: int


def source_statuses(*, at: datetime) -> Sequence[SourceStatus]:
    """Every source of a cluster that is there, with how it does, by name."""
    fresh = Count("metrics", filter=Q(metrics__at__gte=at - FRESH))
    rows = Source.objects.filter(cluster__removed_at=None).annotate(measured=fresh)
    return [
        SourceStatus(source, _source_health(source, at=at), source.measured)
        for source in rows.select_related("cluster").defer("credential").order_by("name")
    ]


def source_status(source: Source, *, at: datetime) -> SourceStatus:
    """How one of them does."""
    measured = CardMetrics.objects.filter(source=source, at__gte=at - FRESH).count()
    return SourceStatus(source, _source_health(source, at=at), measured)


def _source_health(source: Source, *, at: datetime) -> SourceHealth:
    if not source.enabled:
        return SourceHealth.PAUSED
    if source.error or source.stalled:
        return SourceHealth.DEGRADED
    if source.read_at is None:
        return SourceHealth.UNSEEN
    late = at - source.read_at > MISSED_READINGS * timedelta(seconds=max(source.every, 5))
    return SourceHealth.LATE if late else SourceHealth.WELL


class ChartRange(StrEnum):
    """Time range of a chart."""

    HOUR = "1h"
    HOURS = "6h"
    DAY = "24h"
    WEEK = "7d"
    MONTH = "30d"


class ChartResolution(NamedTuple):
    back: timedelta
    #: Between two points.
    step: timedelta


REACHES: Mapping[ChartRange, ChartResolution] = {
    ChartRange.HOUR: ChartResolution(timedelta(hours=1), timedelta(seconds=15)),
    ChartRange.HOURS: ChartResolution(timedelta(hours=6), timedelta(minutes=1)),
    ChartRange.DAY: ChartResolution(timedelta(hours=24), timedelta(minutes=5)),
    ChartRange.WEEK: ChartResolution(timedelta(days=7), timedelta(hours=1)),
    ChartRange.MONTH: ChartResolution(timedelta(days=30), timedelta(hours=1)),
}
_HOUR = timedelta(hours=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


#: So many times the usual distance between two points is a gap.
_GAP = 3
_Row = tuple[float | None, ...]
_Found = Mapping[datetime, _Row]


@dataclass(frozen=True, slots=True, kw_only=True)
class CardSeries:
    """Values of several metrics at the same moments, in the order of time; None is not measured."""

    times: Sequence[datetime]
    values: Mapping[Metric, Sequence[float | None]]


def card_series(
    card: Card, *, metrics: Sequence[Metric], reach: ChartRange, at: datetime
) -> CardSeries:
    """Values from the start of the range to ``at``. Counters: last value; other metrics: mean of each step."""
    back, step = REACHES[reach]
    if step >= _HOUR:
        found = _series_from_hourly_rows(card, metrics=metrics, since=at - back)
    else:
        found = _series_from_history(card, metrics=metrics, since=at - back, step=step, at=at)
    rows = _insert_gap_rows(found, step=step, nothing=(None,) * len(metrics))
    return CardSeries(
        times=[time for time, _ in rows],
        values={metric: [row[place] for _, row in rows] for place, metric in enumerate(metrics)},
    )


def _insert_gap_rows(
    found: _Found, *, step: timedelta, nothing: _Row
) -> list[tuple[datetime, _Row]]:
    """The rows in order, with an empty one where something is missing.

    What is measured less often than a chart has points is no row of gaps: one is what lasts longer than usual.
    """
    times = sorted(found)
    apart = sorted(later - one for one, later in pairwise(times)) or [step]
    median = apart[len(apart) // 2]
    rows: list[tuple[datetime, _Row]] = []
    for time in times:
        if rows and time - rows[-1][0] > _GAP * max(median, step):
            rows.append((rows[-1][0] + step, nothing))
        rows.append((time, found[time]))
    return rows


def _series_from_history(
    card: Card, *, metrics: Sequence[Metric], since: datetime, step: timedelta, at: datetime
) -> _Found:
    binned = Func(
        Value(step, DurationField()),
        F("at"),
        Value(_EPOCH, DateTimeField()),
        function="date_bin",
        output_field=DateTimeField(),
    )
    rows = (
        CardHistory.objects.filter(card=card, at__gte=since, at__lte=at)
        .order_by()
        .annotate(bin=binned)
        .values("bin")
        .annotate(**{f"the_{metric.value}": _hourly_aggregate(metric) for metric in metrics})
        .values_list("bin", *(f"the_{metric.value}" for metric in metrics))
    )
    return {row[0]: tuple(row[1:]) for row in rows}


def _hourly_aggregate(metric: Metric) -> Aggregate:
    """The last value of a counter; the mean of other metrics."""
    return Max(metric.value) if MEASURES[metric].counter else Avg(metric.value)


def _series_from_hourly_rows(card: Card, *, metrics: Sequence[Metric], since: datetime) -> _Found:
    columns = [_hourly_column(metric) for metric in metrics]
    rows = CardHour.objects.filter(card=card, hour__gte=since).order_by("hour")
    return {row[0]: tuple(row[1:]) for row in rows.values_list("hour", *columns)}


def _hourly_column(metric: Metric) -> str:
    """Column of the hourly aggregate: the maximum where there is no mean."""
    means = {field.name for field in CardHour._meta.get_fields()}
    mean = f"{metric.value}_mean"
    return mean if mean in means else f"{metric.value}_max"
