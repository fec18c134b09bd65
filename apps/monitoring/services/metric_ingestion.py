"""Ingestion of metrics: batches are stored by ``apps.telemetry``, and their signals recorded as faults.

Agents push the metrics of their node, each batch once, in any order::

    numbers   1 2 3 4 5 6 7 8 9          sequence 9: the newest accepted number
    accepted  x x x . . . . x x          gaps     [[4, 7]]

A batch above ``sequence`` is current; skipped numbers become a gap. A batch within a gap was buffered: it is
added to the history at its own time and removed from the gap, and is postponed (503) instead of waiting for
locks. Any other number was accepted before. An agent that numbers its batches without skipping has one gap for
each outage, so a few gaps are enough.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from django.db import OperationalError, transaction
from django.db.models import QuerySet
from prometheus_client.parser import text_string_to_metric_families
from psycopg.errors import LockNotAvailable

from apps.accounts.models import User
from apps.fleet.models import Cluster, Node
from apps.fleet.services.card_availability import node_locality_record
from apps.monitoring.models import Fault
from apps.monitoring.services.faults import faults_end, signals_record
from apps.telemetry.models import AgentReport, NodeToken, Source
from apps.telemetry.selectors import PUSH
from apps.telemetry.services import metric_sources, node_tokens
from apps.telemetry.services.metric_batches import (
    AHEAD,
    OLD,
    MetricBatchResult,
    OpenFaults,
    readings_store,
)
from apps.telemetry.services.metric_storage import hours_lock_against_aggregation, start_of_hour
from controlplane.domain.common.reasons import FieldRefused, Reason, ReasonedError
from controlplane.domain.common.topology import SERIES, card_locality
from controlplane.domain.health.faults import FaultLevel, FaultSignal, SignalOrigin
from controlplane.domain.telemetry.metric_batches import MetricBatch
from controlplane.domain.telemetry.metrics import CardMetricsReading
from controlplane.persistence.transactions import fetch_rows, set_lock_timeout
from controlplane.ports import adapter_registry
from controlplane.ports.expositions import MalformedExposition, exposition_reader_of_vendor
from controlplane.ports.telemetry import RejectedReading, TelemetryBatch

#: Cards that one node can have; slices are passed over anyway.
MOST_CARDS = 1024
#: Reported by the agent: whether the tool that reads the cards works.
READER_OK = "ninefold_agent_reader_ok"
#: The fault of a node where it does not.
READER_STALE = "agent-reader-silent"
#: Lock timeout for a batch within a gap.
_BEHIND_WAIT = "2s"
_CARD_INFO = re.compile(rf"^{SERIES}\{{.*$", re.MULTILINE)
_READER_OK = re.compile(rf"^{READER_OK}(?:\{{[^}}\n]*\}})? +([0-9.]+)", re.MULTILINE)


#: Written as SQL, since building the query takes longer than executing it.
_STANDING = """
SELECT fault.card_id, fault.code, fault.level
  FROM monitoring_fault AS fault
  JOIN fleet_node AS node ON node.id = fault.node_id
 WHERE fault.ended_at IS NULL AND fault.card_id IS NOT NULL AND fault.origin = %s
   AND node.cluster_id = %s AND (%s::text IS NULL OR node.name = %s)
"""


@transaction.atomic(savepoint=False)
def readings_record(
    *,
    source: Source,
    readings: Sequence[CardMetricsReading],
    at: datetime,
    metric_batches: Sequence[MetricBatch] = (),
    origin: SignalOrigin = SignalOrigin.EXPORTER,
    node: str | None = None,
    refused: Iterable[RejectedReading] = (),
    behind: bool = False,
) -> MetricBatchResult:
    """Store a batch of metrics and record its fault signals; for the parameters see ``readings_store``."""
    stored = readings_store(
        source=source,
        readings=readings,
        at=at,
        metric_batches=metric_batches,
        origin=origin,
        node=node,
        refused=refused,
        behind=behind,
    )
    if not stored.newest:
        return stored.recorded
    signals = stored.signals(_open_fault_levels_by_card(source.cluster, origin=origin, node=node))
    if signals:
        signals_record(signals=signals, at=at)
    return replace(stored.recorded, signals=len(signals))


def _open_fault_levels_by_card(
    cluster: Cluster, *, origin: SignalOrigin, node: str | None
) -> OpenFaults:
    """Card → code → level of the open faults of this origin."""
    standing: dict[int, dict[str, FaultLevel]] = {}
    for card, code, level in fetch_rows(_STANDING, [origin.value, cluster.pk, node, node]):
        standing.setdefault(card, {})[code] = FaultLevel(level)
    return standing


class MetricPushRefused(FieldRefused):
    """The batch is invalid and will never be accepted; ``field`` is the cause."""


class MetricPushOutdated(MetricPushRefused):
    """A batch that was measured too long ago, and with it every one from before."""


class MetricPushBusy(ReasonedError):
    """A batch that came behind cannot be kept now; it can be sent again."""


class NodeTokenMismatch(ReasonedError):
    """A token was used to speak for a node that it is not of."""

    def __init__(self, *, own: str) -> None:
        super().__init__(
            "telemetry_source.token.wrong_node",
            "this token belongs to node {node}; all cards of the batch belong to other nodes",
            node=own,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPush:
    #: The newest accepted batch of this token.
    sequence: int
    #: Whether this one was: False where it came before, or its number is of before what is remembered.
    taken: bool
    recorded: MetricBatchResult = field(default_factory=MetricBatchResult)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricPush:
    """A batch as it was sent."""

    vendor: str
    sequence: int
    measured_at: datetime
    text: str
    #: Name and version reported by the sender.
    agent: str = ""


def metric_push_record(*, token: NodeToken, push: MetricPush, at: datetime) -> StoredPush:
    """Store what the token's node reports of its cards; a batch that was accepted before changes nothing.

    :raises MetricPushRefused: if vendor, time or text are invalid.
    :raises MetricPushOutdated: if it was measured too long ago.
    :raises MetricPushBusy: if it belongs to the history and the rows are locked, for example while its hour is
        summed up.
    :raises NodeTokenMismatch: if all of its cards belong to another node.
    """
    _require_recent_measurement_time(push.measured_at, at=at)
    try:
        reader = exposition_reader_of_vendor(push.vendor)
        batch = reader.read(push.text, at=push.measured_at, node=token.node.name, most=MOST_CARDS)
    except adapter_registry.AdapterNotFound as unknown:
        raise MetricPushRefused(str(unknown), field="X-Ninefold-Vendor") from unknown
    except MalformedExposition as wrong:
        raise MetricPushRefused(str(wrong), field="body") from wrong
    node = token.node.name
    if batch.readings and all(reading.node != node for reading in batch.readings):
        raise NodeTokenMismatch(own=node)
    try:
        return _record_metric_push(token=token, push=push, batch=batch, at=at)
    except OperationalError as error:
        if not isinstance(error.__cause__, LockNotAvailable):
            raise
        raise MetricPushBusy(
            "telemetry_source.push.busy",
            "other requests are changing the same cards; send the batch again shortly",
        ) from None


def _require_recent_measurement_time(measured_at: datetime, *, at: datetime) -> None:
    reported, now = measured_at.isoformat(), at.isoformat()
    if measured_at > at + AHEAD:
        raise MetricPushRefused(
            "telemetry_source.time.in_future",
            "{reported} is more than a minute ahead of {now}; check the clock of the node",
            reported=reported,
            now=now,
            field="X-Ninefold-At",
        )
    if measured_at < at - OLD:
        raise MetricPushOutdated(
            "telemetry_source.time.too_old",
            "{reported} is more than a day behind {now}; check the clock of the node",
            reported=reported,
            now=now,
            field="X-Ninefold-At",
        )


@transaction.atomic
def _record_metric_push(
    *, token: NodeToken, push: MetricPush, batch: TelemetryBatch, at: datetime
) -> StoredPush:
    node = token.node
    reader_ok = _is_agent_reader_working(push.text)
    agent: AgentReport = {"name": push.agent, "vendor": push.vendor, "reader_ok": reader_ok}
    taken = node_tokens.node_token_accept_newest(token, push.sequence, agent=agent, at=at)
    if behind := taken is None:
        set_lock_timeout(_BEHIND_WAIT)
        # Before the token's row is locked, for which newer batches wait.
        if (hour := start_of_hour(push.measured_at)) < start_of_hour(at):
            hours_lock_against_aggregation(hours=[hour])
        taken = node_tokens.node_token_accept_earlier(token, push.sequence, at=at)
    if taken is None:
        newest = NodeToken.objects.values_list("sequence", flat=True).get(pk=token.pk)
        return StoredPush(sequence=newest, taken=False)
    newest = taken.sequence
    source = metric_sources.agent_push_source(node.cluster, standing=taken.source)
    recorded = readings_record(
        source=source,
        readings=batch.readings,
        at=at,
        origin=SignalOrigin.AGENT,
        node=node.name,
        refused=batch.refused,
        behind=behind,
    )
    # The state of the tool then is not its state now.
    if not behind and (reader_ok is False or (reader_ok and token.agent.get("reader_ok") is False)):
        signals_record(
            signals=[_agent_reader_fault_signal(token, push, stands=not reader_ok)], at=at
        )
    # Nor does what was refused of it, nor where its cards were attached.
    if not behind:
        _record_locality(node, push.text)
        metric_sources.metric_source_record_push(source=source, at=at, recorded=recorded)
    return StoredPush(sequence=newest, taken=True, recorded=recorded)


def _record_locality(node: Node, text: str) -> None:
    """Store the locality of the node's cards, if the agent reports it and it has changed."""
    cards = {}
    for line in _CARD_INFO.findall(text):
        card = card_locality(_locality_labels(line))
        if card is not None:
            cards[str(card.index)] = card.document
    if any(node.locality.get(index) != card for index, card in cards.items()):
        node_locality_record(node=node.pk, cards=cards)


def _locality_labels(line: str) -> dict[str, str]:
    """Of one sample; empty where the parser cannot read it."""
    try:
        return {
            name: value
            for family in text_string_to_metric_families(line)
            for sample in family.samples
            for name, value in sample.labels.items()
        }
    except ValueError:
        return {}


def _is_agent_reader_working(text: str) -> bool | None:
    """None if the agent does not report it."""
    found = _READER_OK.search(text)
    return found[1].strip("0.") != "" if found else None


def _agent_reader_fault_signal(token: NodeToken, push: MetricPush, *, stands: bool) -> FaultSignal:
    return FaultSignal(
        origin=SignalOrigin.AGENT,
        cluster=token.node.cluster.uid,
        node=token.node.name,
        index=None,
        code=READER_STALE,
        level=FaultLevel.NOTE,
        at=push.measured_at,
        active=stands,
        message=Reason(
            "fault.signal.reader_unresponsive",
            "the tool that reads the cards of the node does not respond",
        ),
        vendor=push.vendor,
    )


@transaction.atomic
def metric_source_delete(*, source: Source, actor: User, at: datetime) -> None:
    """Delete a metric source; its metrics are kept, and faults that only it reported end.

    Faults that agents reported do not end: the source that they push to is created again by their next batch.

    :raises PermissionRefused: unless ``actor`` operates the fleet.
    """
    metric_sources.metric_source_prepare_deletion(source=source, actor=actor)
    if source.kind != PUSH:
        faults_end(
            faults=_open_faults_of_source(source),
            reason=Reason(
                "fault.end.source_deleted",
                "source {source} was deleted; no other source reports this fault",
                source=source.name,
            ),
            actor=actor,
            at=at,
        )
    source.delete()


def _open_faults_of_source(source: Source) -> QuerySet[Fault]:
    """What exporters reported of cards that no other source of the cluster measured last.

    A fault has an origin and no source. Where another source reads the card too, it reports the fault again.
    """
    read = Source.objects.filter(cluster=source.cluster).exclude(kind=PUSH)
    rows = Fault.objects.filter(node__cluster=source.cluster, origin=SignalOrigin.EXPORTER)
    return rows.exclude(card__metrics__source__in=read.exclude(pk=source.pk))


@transaction.atomic
def agent_token_revoke(*, token: NodeToken, actor: User, at: datetime) -> None:
    """Revoke an agent's token; with the last valid token of a node, the faults that its agent reported end.

    :raises PermissionRefused: unless ``actor`` operates the fleet.
    """
    if node_tokens.node_token_revoke(token=token, actor=actor, at=at):
        node = token.node
        faults_end(
            faults=Fault.objects.filter(node=node, origin=SignalOrigin.AGENT),
            reason=Reason(
                "fault.end.token_revoked",
                "the last token of node {node} was revoked; no other source reports this fault",
                node=node.name,
            ),
            actor=actor,
            at=at,
        )
