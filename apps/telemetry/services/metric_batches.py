"""Validate and store batches of metrics: the latest values of each card, and its history.

::

    Reading ──which card?──plausible time?──possible values?──▶ Row ──▶ latest and history, one statement
      ▲ └── fault codes, serial numbers of those that are the latest ──▶ StoredReadings.signals ──▶ faults
      └─ MetricBatch with anything unusual; others are stored as they are

Input is not trusted: rejected values are counted and explained, and do not affect the rest of their batch. A
repeated batch changes nothing: no row, no fault, no time.

A card is identified by its node's name and its index there, or by its serial number. Every batch looks this up
for every card, and the result changes with the cluster's inventory only. So each process caches it, and reads it
again when it is old or a batch names an unknown card. A stale entry is harmless: a removed card is skipped when
metrics are written.

A metric batch is validated by the same rules as readings, in columns, and accepted as a whole or not at all: a
batch with anything to be rejected or examined is split into readings, which are validated one by one. So
rejections are counted in one place.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import numpy as np
from django.db import transaction

from apps.fleet.models import Card, Cluster
from apps.fleet.services.card_availability import SerialNumberChange, card_serials_record
from apps.telemetry.models import CardMetrics, Source
from apps.telemetry.services.metric_storage import (
    METRICS,
    CardMetricColumns,
    CardMetricRow,
    concatenate_metric_columns,
    hours_mark_for_aggregation,
    metric_columns_of_rows,
    metrics_write,
    start_of_hour,
)
from controlplane.domain.common.reasons import Reason
from controlplane.domain.health.faults import FaultLevel, FaultSignal, SignalOrigin
from controlplane.domain.telemetry.metric_batches import MetricBatch, Numbers
from controlplane.domain.telemetry.metrics import MEASURES, CardMetricsReading, Metric
from controlplane.ports import adapter_registry
from controlplane.ports.telemetry import RejectedReading

#: Seconds after which the index is read anew, and the minimum interval of reading for unknown cards.
LONGEST, SHORTEST = 30.0, 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CardLocation:
    node: str
    index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedSerial:
    serial: str
    #: Primary key of the source that reported it.
    source: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CardIndex:
    """The whole cards of a cluster by their identification in metrics."""

    read_at: float
    by_place: dict[tuple[str, int], int]
    by_serial: dict[str, int]
    of: dict[int, CardLocation]
    #: Last serial number of each card by source; absent if none was reported.
    said: dict[int, ReportedSerial]
    nodes: frozenset[str]

    def card(self, *, node: str, index: int | None, serial: str) -> int | None:
        """Primary key of the card; None if there is none.

        A serial number alone must belong to that node: a card that was moved is recognised by its index.
        """
        if index is not None:
            return self.by_place.get((node, index))
        card = self.by_serial.get(serial)
        return card if card is not None and self.of[card].node == node else None


_known: dict[int, CardIndex] = {}


def card_index(cluster: int, *, anew: bool = False) -> CardIndex:
    """Index of the cluster with that primary key; ``anew`` reads it again unless it was read a moment ago."""
    places = _known.get(cluster)
    age = time.monotonic() - places.read_at if places is not None else LONGEST
    if places is None or age >= (SHORTEST if anew else LONGEST):
        places = _known[cluster] = _load_card_index(cluster)
    return places


def card_index_invalidate(cluster: int) -> None:
    """Read the index again at the next call, because the inventory changed."""
    _known.pop(cluster, None)


def _load_card_index(cluster: int) -> CardIndex:
    whole = Card.objects.filter(node__cluster=cluster, node__removed_at=None, parent=None)
    rows = list(whole.values_list("pk", "node__name", "index", "serial"))
    metrics = CardMetrics.objects.filter(card__in=whole)
    said = {
        card: ReportedSerial(serial=serial, source=source)
        for card, serial, source in metrics.values_list("card_id", "serial", "source_id")
    }
    serials = {pk: serial for pk, _, _, serial in rows}
    serials |= {card: one.serial for card, one in said.items() if one.serial}
    return CardIndex(
        read_at=time.monotonic(),
        by_place={(node, index): pk for pk, node, index, _ in rows},
        by_serial={serial: pk for pk, serial in serials.items() if serial},
        of={pk: CardLocation(node=node, index=index) for pk, node, index, _ in rows},
        said=said,
        nodes=frozenset(node for _, node, _, _ in rows),
    )


#: Tolerated clock skew of a source, and maximum age of its metrics.
AHEAD, OLD = timedelta(minutes=1), timedelta(days=1)
#: Smaller values are no measurements, and do not fit a single precision column.
TINY = 1e-30


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidMetricBatch:
    """A sheet with nothing in it to be refused, and which cards it is about."""

    metric_batch: MetricBatch
    cards: Sequence[int]

    def faulty(self) -> Iterator[int]:
        """Cards with codes of faults."""
        return (self.cards[place] for place in self.metric_batch.faults)

    def of(
        self, cards: Container[int], *, at: datetime
    ) -> Iterator[tuple[CardMetricRow, CardMetricsReading]]:
        """The entries of those cards; ``at`` as in ``metric_columns_of_batches``."""
        for place, card in enumerate(self.cards):
            if card in cards:
                reading = self.metric_batch.reading(place)
                values = [reading.metrics.get(metric) for metric in METRICS]
                row = CardMetricRow(
                    card=card, at=min(reading.at, at), serial=reading.serial, values=values
                )
                yield row, reading


def metric_batches_validate(
    *,
    metric_batches: Sequence[MetricBatch],
    readings: Sequence[CardMetricsReading],
    places: CardIndex,
    at: datetime,
) -> tuple[list[ValidMetricBatch], list[CardMetricsReading]]:
    """Return the batches that can be stored as they are, and all readings that are to be validated one by one."""
    taken, others = [], list(readings)
    for metric_batch in metric_batches:
        cards = (
            _find_cards_of_batch(metric_batch, places)
            if at - OLD <= metric_batch.at <= at + AHEAD
            else None
        )
        if cards is None:
            others += metric_batch.readings()
        else:
            taken.append(ValidMetricBatch(metric_batch=metric_batch, cards=cards))
    good = []
    for one, is_good in zip(taken, _plausible_batches(taken), strict=True):
        if is_good:
            good.append(one)
        else:
            others += one.metric_batch.readings()
    if not _has_each_card_once(good, others, places):
        return [], [*others, *(one for each in good for one in each.metric_batch.readings())]
    return good, others


def metric_columns_of_batches(
    taken: Sequence[ValidMetricBatch], *, at: datetime
) -> CardMetricColumns:
    """What is kept of them; a clock that is a little ahead is set right to ``at``."""
    return CardMetricColumns(
        cards=[card for one in taken for card in one.cards],
        at=[
            instant for one in taken for instant in [min(one.metric_batch.at, at)] * len(one.cards)
        ],
        serials=[whose.serial for one in taken for whose in one.metric_batch.whose],
        values={
            metric: np.where(np.abs(column) < TINY, 0.0, column)
            for metric in _reported_metrics(taken)
            for column in (_metric_column(taken, metric),)
        },
    )


def _find_cards_of_batch(metric_batch: MetricBatch, places: CardIndex) -> list[int] | None:
    """None if a card is unknown, or has another serial number than before."""
    cards = []
    for whose in metric_batch.whose:
        card = places.card(node=whose.node, index=whose.index, serial=whose.serial)
        said = places.said.get(card) if card is not None else None
        if card is None or (whose.serial and (said is None or said.serial != whose.serial)):
            return None
        cards.append(card)
    return cards


def _plausible_batches(taken: Sequence[ValidMetricBatch]) -> list[bool]:
    """Which of them hold numbers that cards can have, and at least something of each card."""
    if not taken:
        return []
    wrong = np.zeros(sum(len(one.cards) for one in taken), dtype=np.bool_)
    says = np.concatenate([one.metric_batch.speaks for one in taken])
    for metric in _reported_metrics(taken):
        column, measure = _metric_column(taken, metric), MEASURES[metric]
        wrong |= (column < measure.lowest) | (column > measure.highest)
        says |= ~np.isnan(column)
    firsts = np.cumsum([0, *(len(one.cards) for one in taken[:-1])])
    return [not one for one in np.logical_or.reduceat(wrong | ~says, firsts).tolist()]


def _reported_metrics(taken: Sequence[ValidMetricBatch]) -> list[Metric]:
    reported = {metric for one in taken for metric in one.metric_batch.metrics}
    return [metric for metric in METRICS if metric in reported]


def _metric_column(taken: Sequence[ValidMetricBatch], metric: Metric) -> Numbers:
    """One metric of all cards of all batches."""
    return np.concatenate(
        [
            column
            if (column := one.metric_batch.metrics.get(metric)) is not None
            else _empty_column(one)
            for one in taken
        ]
    )


def _empty_column(one: ValidMetricBatch) -> Numbers:
    return np.full(len(one.cards), np.nan)


def _has_each_card_once(
    taken: Sequence[ValidMetricBatch], others: Sequence[CardMetricsReading], places: CardIndex
) -> bool:
    """Whether each card occurs once in the batches: else the latest reading must be determined."""
    cards = [card for one in taken for card in one.cards]
    known = set(cards)
    return len(known) == len(cards) and not any(
        places.card(node=one.node, index=one.index, serial=one.serial) in known for one in others
    )


#: Maximum number of different rejection reasons.
MAX_EXAMPLES = 20
#: Our own notes about cards, beside their makers' codes.
REPLACED, MOVED = "card-replaced", "card-moved"
_OURS = frozenset({REPLACED, MOVED})
_BOUNDS = tuple((metric, MEASURES[metric].lowest, MEASURES[metric].highest) for metric in METRICS)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricBatchResult:
    """What became of a batch."""

    #: Cards with valid metrics, and those of them whose latest metrics these are.
    cards: int = 0
    newest: int = 0
    #: Cards and values that were not kept, and why.
    refused: int = 0
    refusals: tuple[str, ...] = ()
    signals: int = 0


@dataclass(slots=True)
class _RejectionCounts:
    """Counts rejections, with one example for each reason."""

    count: int = 0
    examples: dict[str, str] = field(default_factory=dict)
    times: Counter[str] = field(default_factory=Counter)

    def add(self, *, reason: str, what: str, count: int = 1) -> None:
        self.count += count
        if reason in self.examples or len(self.examples) < MAX_EXAMPLES:
            self.examples.setdefault(reason, what)
            self.times[reason] += count

    def messages(self) -> tuple[str, ...]:
        return tuple(
            _rejection_count_message(reason, what=what, times=self.times[reason])
            for reason, what in self.examples.items()
        )


def _rejection_count_message(reason: str, *, what: str, times: int) -> str:
    # What came from outside is shown in plain ASCII: it may hold anything.
    return Reason(
        "telemetry_source.refusal.count",
        "{count}× {reason} (for example {example})",
        count=times,
        reason=reason,
        example=ascii(what[:60]),
    )


#: Primary key of a card → code → level of its open faults.
OpenFaults = Mapping[int, Mapping[str, FaultLevel]]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredReadings:
    """The result of a batch, and the fault signals of its latest readings."""

    recorded: MetricBatchResult
    #: Primary keys of the cards whose newest metrics are of this batch.
    newest: frozenset[int]
    _rows: Mapping[int, CardMetricRow]
    _readings: Mapping[int, CardMetricsReading]
    _metric_batches: Sequence[ValidMetricBatch]
    _renumbered: Mapping[int, SerialNumberChange]
    _cluster: Cluster
    _origin: SignalOrigin
    _at: datetime

    def signals(self, open_faults: OpenFaults) -> list[FaultSignal]:
        """The faults that it reports, and the end of those that it no longer reports.

        :param open_faults: the faults that the same origin reported and has not ended.
        """
        faulty = {card for one in self._metric_batches for card in one.faulty()}
        looked_at = self.newest & (open_faults.keys() | faulty)
        return _fault_signals(
            [
                *(
                    (self._rows[card], self._readings[card])
                    for card in self.newest
                    if card in self._rows
                ),
                *(pair for one in self._metric_batches for pair in one.of(looked_at, at=self._at)),
            ],
            stood=open_faults,
            renumbered={card: one for card, one in self._renumbered.items() if one.before},
            cluster=self._cluster,
            origin=self._origin,
        )


@transaction.atomic(savepoint=False)
def readings_store(
    *,
    source: Source,
    readings: Sequence[CardMetricsReading],
    at: datetime,
    metric_batches: Sequence[MetricBatch] = (),
    origin: SignalOrigin = SignalOrigin.EXPORTER,
    node: str | None = None,
    refused: Iterable[RejectedReading] = (),
    behind: bool = False,
) -> StoredReadings:
    """Store a batch of a source's metrics; the caller passes its signals to faults in the same transaction.

    With ``node`` the source is limited to that node, in readings, and others are rejected. Earlier rejections by
    the adapter are counted too. A batch that is ``behind`` a newer one of the same agent goes to the history
    only.
    """
    notes = _RejectionCounts()
    for one in refused:
        notes.add(reason=one.reason, what=one.what, count=one.count)
    cluster = source.cluster
    taken, others = metric_batches_validate(
        metric_batches=metric_batches, readings=readings, places=card_index(cluster.pk), at=at
    )
    latest = _latest_reading_by_card(others, {}, cluster=cluster, node=node, notes=notes)
    if latest and any(card in latest for one in taken for card in one.cards):
        # The index was read anew since the batches were validated, and a reading belongs to one of their cards.
        apart = [reading for one in taken for reading in one.metric_batch.readings()]
        latest, taken = (
            _latest_reading_by_card(apart, latest, cluster=cluster, node=node, notes=notes),
            [],
        )
    rows = {}
    for card, reading in latest.items():
        row = _validated_metric_row(card, reading, at=at, notes=notes)
        if row is not None:
            rows[card] = row
    renumbered = _serial_changes(rows.values(), source=source)
    columns = concatenate_metric_columns(
        [metric_columns_of_batches(taken, at=at), metric_columns_of_rows(list(rows.values()))]
    )
    newest = metrics_write(columns=columns, source=source.pk, received_at=at, behind=behind)
    late = {hour for each in set(columns.at) if (hour := start_of_hour(each)) < start_of_hour(at)}
    if late:
        hours_mark_for_aggregation(hours=late)
    renumbered = {card: one for card, one in renumbered.items() if card in newest}
    if renumbered:
        card_serials_record(serials=renumbered)
        transaction.on_commit(lambda: card_index_invalidate(cluster.pk))
    return StoredReadings(
        recorded=MetricBatchResult(
            cards=len(columns.cards),
            newest=len(newest),
            refused=notes.count,
            refusals=notes.messages(),
        ),
        newest=frozenset(newest),
        _rows=rows,
        _readings=latest,
        _metric_batches=taken,
        _renumbered=renumbered,
        _cluster=cluster,
        _origin=origin,
        _at=at,
    )


def _latest_reading_by_card(
    readings: Sequence[CardMetricsReading],
    before: Mapping[int, CardMetricsReading],
    *,
    cluster: Cluster,
    node: str | None,
    notes: _RejectionCounts,
) -> dict[int, CardMetricsReading]:
    """The latest reading of each known card, and earlier ones."""
    places = card_index(cluster.pk)
    latest = dict(before)
    for reading in readings:
        if node is not None and reading.node != node:
            notes.add(
                reason=Reason(
                    "telemetry_source.sample.wrong_node", "the sample belongs to another node"
                ),
                what=reading.node,
            )
            continue
        card = places.card(node=reading.node, index=reading.index, serial=reading.serial)
        if card is None:
            places = card_index(cluster.pk, anew=True)
            card = places.card(node=reading.node, index=reading.index, serial=reading.serial)
        if card is None:
            known = reading.node in places.nodes
            reason = (
                Reason("telemetry_source.sample.card_not_found", "the node does not have this card")
                if known
                else Reason(
                    "telemetry_source.sample.node_not_found", "the cluster does not have this node"
                )
            )
            notes.add(
                reason=reason, what=f"{reading.node}/{reading.index} {reading.serial}".rstrip()
            )
        elif card not in latest or reading.at > latest[card].at:
            latest[card] = reading
    return latest


def _validated_metric_row(
    card: int, reading: CardMetricsReading, *, at: datetime, notes: _RejectionCounts
) -> CardMetricRow | None:
    """The possible metrics at a possible time; None if nothing is left."""
    if reading.at > at + AHEAD:
        notes.add(
            reason=Reason(
                "telemetry_source.sample.in_future",
                "the timestamp is more than a minute in the future",
            ),
            what=reading.at.isoformat(),
        )
        return None
    if reading.at < at - OLD:
        notes.add(
            reason=Reason(
                "telemetry_source.sample.too_old", "the timestamp is more than a day old"
            ),
            what=reading.at.isoformat(),
        )
        return None
    values: list[float | None] = []
    metrics, some = reading.metrics, reading.faults is not None
    for metric, lowest, highest in _BOUNDS:
        value = metrics.get(metric)
        if value is None:
            values.append(None)
        elif type(value) in (float, int) and lowest <= value <= highest:
            values.append(value if abs(value) >= TINY else 0.0)
            some = True
        else:
            notes.add(
                reason=Reason(
                    "telemetry_source.sample.out_of_range",
                    "the value of {metric} is out of range",
                    metric=metric.value,
                ),
                what=_format_value(value),
            )
            values.append(None)
    if not some:
        notes.add(
            reason=Reason("telemetry_source.sample.empty", "the sample has no metrics of the card"),
            what=f"{reading.node}/{reading.index}",
        )
        return None
    serial = reading.serial if reading.serial.isprintable() else ""
    # A clock that is a little ahead is set right: nothing was measured after it came.
    return CardMetricRow(card=card, at=min(reading.at, at), serial=serial[:80], values=values)


def _format_value(value: object) -> str:
    return str(value) if isinstance(value, float | str | bool) else type(value).__name__


def _serial_changes(
    rows: Collection[CardMetricRow], *, source: Source
) -> dict[int, SerialNumberChange]:
    """Cards that report another serial number than before, or their first one."""
    found = _serial_changes_in(rows, card_index(source.cluster_id), source=source)
    if any(one.before for one in found.values()):
        # Another process may have noticed it already.
        card_index_invalidate(source.cluster_id)
        found = _serial_changes_in(rows, card_index(source.cluster_id), source=source)
    return found


def _serial_changes_in(
    rows: Collection[CardMetricRow], places: CardIndex, *, source: Source
) -> dict[int, SerialNumberChange]:
    found = {}
    for row in rows:
        said = places.said.get(row.card)
        if row.serial and (said is None or said.serial != row.serial):
            # Sources may number differently: a report is compared with the previous report of the same source.
            same = said is not None and said.source == source.pk
            before = said.serial if same and said is not None else ""
            found[row.card] = SerialNumberChange(before=before, after=row.serial)
    return found


def _fault_signals(
    current: Sequence[tuple[CardMetricRow, CardMetricsReading]],
    *,
    stood: Mapping[int, Mapping[str, FaultLevel]],
    renumbered: Mapping[int, SerialNumberChange],
    cluster: Cluster,
    origin: SignalOrigin,
) -> list[FaultSignal]:
    """Fault signals of the latest readings: of active faults, and of faults that are no longer reported."""
    places = card_index(cluster.pk)
    signals = []
    for row, reading in current:
        levels, messages = _fault_levels(reading), {}
        if row.card in renumbered:
            code, messages[code] = _serial_number_fault(row.card, renumbered[row.card], places)
            levels[code] = FaultLevel.NOTE
        gone = {
            code: level
            for code, level in stood.get(row.card, {}).items()
            if code not in levels and (code in _OURS or reading.faults is not None)
        }
        place = places.of[row.card]
        signals += [
            FaultSignal(
                origin=origin,
                cluster=cluster.uid,
                node=place.node,
                index=place.index,
                code=code,
                level=level,
                at=row.at,
                active=code in levels,
                message=messages.get(code, ""),
                vendor="" if code in _OURS else reading.vendor,
            )
            for code, level in {**levels, **gone}.items()
        ]
    return signals


def _fault_levels(reading: CardMetricsReading) -> dict[str, FaultLevel]:
    """The active codes, each with its level from the vendor's fault map."""
    plugin = adapter_registry.chip_plugins().get(reading.vendor)
    if plugin is None or not reading.faults:
        return {}
    faults = plugin.profile().faults
    return {code: faults.level(code) for code in reading.faults}


def _serial_number_fault(
    card: int, renumbered: SerialNumberChange, places: CardIndex
) -> tuple[str, str]:
    """A code of Ninefold, and a text."""
    before = places.by_serial.get(renumbered.after)
    if before is not None and before != card:
        place = places.of[before]
        message = Reason(
            "card.serial.moved",
            "the card with serial number {serial} has been moved to this slot from "
            "{node}, index {index}",
            serial=renumbered.after,
            node=place.node,
            index=place.index,
        )
        return MOVED, message
    message = Reason(
        "card.serial.replaced",
        "the serial number of the card has changed from {before} to {after}",
        before=renumbered.before,
        after=renumbered.after,
    )
    return REPLACED, message
