"""Card metrics parsed from an exporter's output: a pure function over the Prometheus text format 0.0.4.

The vendor's ``Exporter`` maps series to metrics, so one reader serves every vendor::

    DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-1b",Hostname="n1"} 97
    └──────┬───────────┘└───────────────┬───────────────────┘ └┬┘
     which figures               which card             times ``scale``

An exporter prints the same labels with each series of a card, scrape after scrape. So a label block is parsed
once and then looked up; for each further sample the reader looks up two strings in tables and parses a number.

The readers are separate from ``registry``, which cluster helpers import with the standard library alone: metrics
are parsed by columns, and that takes numpy.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum, auto
from functools import cache

import numpy as np

from controlplane.domain.common.reasons import NONE, Reason, ReasonedValueError
from controlplane.domain.telemetry.metric_batches import CardIdentity
from controlplane.domain.telemetry.metrics import CardMetricsReading, Metric
from controlplane.ports import adapter_registry
from controlplane.ports.chips import Exporter, ExporterSeries
from controlplane.ports.exposition_layouts import ExpositionLayout, MetricColumn, line_layout_of
from controlplane.ports.telemetry import RejectedReading, TelemetryBatch

FAULT = "fault"
_HEXADECIMAL = 16
#: Beyond it a floating-point number is no exact code.
_LARGEST_CODE = 2**53
#: Texts between braces beyond this are no exporter's.
LONGEST_LABELS = 8_192
#: Texts between braces that are remembered between two readings.
_REMEMBERED = 200_000
_NAME = re.compile("[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL = re.compile(r'[ \t]*([a-zA-Z_][a-zA-Z0-9_]*)[ \t]*=[ \t]*"((?:[^"\\]|\\.)*)"[ \t]*(?:,|$)')
_ESCAPED = re.compile(r"\\(.)")
_ESCAPES = {"n": "\n"}
_INDEX = re.compile("[0-9]{1,6}")


class MalformedExposition(ReasonedValueError):
    """What was printed is not the Prometheus text format; the message shows the line."""

    def __init__(self, line: str) -> None:
        super().__init__(
            "telemetry_source.exposition.malformed",
            "the line is not in the Prometheus text format: {line}",
            line=repr(line[:120]),
        )


@dataclass(frozen=True, slots=True)
class _CardKey:
    """The card of a series, from its labels."""

    node: str
    index: int | None
    serial: str


class _UnknownLabels(Enum):
    """Labels that were not met before, which is something else than labels of no card."""

    UNKNOWN = auto()


_UNKNOWN = _UnknownLabels.UNKNOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpositionSample:
    """One number of one series, however it came."""

    name: str
    labels: Mapping[str, str]
    value: float
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class _SlotMatch:
    """A place in a card's row of numbers, filled by a series that bears those labels."""

    slot: int
    labels: tuple[tuple[str, str], ...]


class ExpositionReader:
    """Reads texts with one vendor's names. Keep it: it recognises cards that it has read before."""

    def __init__(self, exporter: Exporter, *, vendor: str) -> None:
        self._exporter = exporter
        self._vendor = vendor
        self._names: dict[str, tuple[_SlotMatch, ...]] = {}
        self._slots: dict[tuple[str, tuple[tuple[str, str], ...]], int] = {}
        self._metrics = [
            (
                Metric(metric),
                series,
                tuple(self._series_slot(name, series) for name in series.names),
            )
            for metric, series in exporter.series.items()
            if metric != FAULT
        ]
        fault = exporter.series.get(FAULT)
        self._faults = (
            tuple(self._series_slot(name, fault) for name in fault.names) if fault else ()
        )
        #: Names that fill one place, whatever their labels.
        self._single_slots = {
            name: parts[0].slot
            for name, parts in self._names.items()
            if len(parts) == 1 and not parts[0].labels
        }
        self._cards: dict[str, _CardKey | None] = {}
        self._labels: dict[str, Mapping[str, str]] = {}
        self._ignored_names: set[str] = set()

    def _series_slot(self, name: str, series: ExporterSeries) -> int:
        labels = tuple(sorted(series.labels.items()))
        slot = self._slots.setdefault((name, labels), len(self._slots))
        parts = self._names.get(name, ())
        if all(part.slot != slot for part in parts):
            self._names[name] = (*parts, _SlotMatch(slot=slot, labels=labels))
        return slot

    def read(
        self, text: str, *, at: datetime, node: str = "", by_label: bool = True, most: int = 100_000
    ) -> TelemetryBatch:
        """One reading for each card, in the order in which the text has them; other series are passed over.

        ``node`` is whose figures they are where no label says so, and with ``by_label`` off in any case. Of more
        than ``most`` cards the rest is refused. Numbers are not judged here: they may be impossible ones.

        :raises MalformedExposition: if the text is in another format.
        """
        # Whoever fills these up cannot make them grow for ever.
        if len(self._cards) > _REMEMBERED:
            self._cards.clear()
            self._labels.clear()
        if len(self._ignored_names) > _REMEMBERED:
            self._ignored_names.clear()
        rows, refused = self._read_rows(text, most=most)
        readings = []
        for card, values in rows.items():
            whose = card.node if by_label and card.node else node
            if whose:
                readings.append(self._build_reading(card, values, node=whose, at=at))
            else:
                refused.append(
                    RejectedReading(
                        what=_metric_name(card),
                        reason=Reason(
                            "telemetry_source.sample.node_missing",
                            "the metrics do not name the node of the card",
                        ),
                    )
                )
        return TelemetryBatch(readings=tuple(readings), refused=tuple(refused))

    def gather(
        self, samples: Iterable[ExpositionSample], *, node_of: Callable[[Mapping[str, str]], str]
    ) -> TelemetryBatch:
        """The same from parsed samples; a card's time is that of its newest one."""
        rows: dict[_CardKey, list[float | None]] = {}
        newest: dict[_CardKey, datetime] = {}
        for sample in samples:
            parts = self._names.get(sample.name, ())
            card = self._card_of_labels(sample.labels) if parts else None
            if card is None:
                continue
            card = replace(card, node=node_of(sample.labels))
            row = rows.setdefault(card, [None] * len(self._slots))
            newest[card] = max(sample.at, newest.get(card, sample.at))
            for part in parts:
                if all(sample.labels.get(label) == wanted for label, wanted in part.labels):
                    row[part.slot] = sample.value
        return TelemetryBatch(
            readings=tuple(
                self._build_reading(card, values, node=card.node, at=newest[card])
                for card, values in rows.items()
                if card.node
            ),
            refused=tuple(
                RejectedReading(
                    what=_metric_name(card),
                    reason=Reason(
                        "telemetry_source.sample.node_missing",
                        "the metrics do not name the node of the card",
                    ),
                )
                for card in rows
                if not card.node
            ),
        )

    def layout_of(
        self, text: str, *, node: str = "", by_label: bool = True
    ) -> ExpositionLayout | None:
        """How the next text is known again that differs from this one in its numbers alone.

        None where that is not worth it: if it has blank lines, cards of unknown nodes, or none at all.
        """
        outline = line_layout_of(text, names=self._names)
        if outline is None:
            return None
        cards: dict[_CardKey, dict[int, int]] = {}
        for number, head in enumerate(outline.heads):
            name, _, rest = head.partition("{")
            block, end, _ = rest.rpartition("}")
            card = self._parse_card_labels(block, head) if end else None
            if card is not None:
                slots = cards.setdefault(card, {})
                slots.update(dict.fromkeys(self._slots_of_metric(name, block, head), number))
        whose = tuple(
            CardIdentity(card.node if by_label and card.node else node, card.index, card.serial)
            for card in cards
        )
        if not whose or not all(one.node and one.serial.isprintable() for one in whose):
            return None
        places = np.full((len(self._slots), len(whose)), len(outline.heads), dtype=np.intp)
        for column, slots in enumerate(cards.values()):
            places[list(slots), column] = list(slots.values())
        return ExpositionLayout(
            outline=outline,
            whose=whose,
            places=places,
            columns=tuple(
                MetricColumn(metric=metric, slots=slots, absent=series.absent, scale=series.scale)
                for metric, series, slots in self._metrics
            ),
            faults=self._faults,
            codes_of=lambda values: self._fault_codes(values) or (),
            vendor=self._vendor,
        )

    def _slots_of_metric(self, name: str, block: str, line: str) -> Iterator[int]:
        """Places in a card's row that this series fills."""
        parts = self._names[name]
        labels = self._labels_of_line(block, line) if any(part.labels for part in parts) else {}
        for part in parts:
            if all(labels.get(label) == wanted for label, wanted in part.labels):
                yield part.slot

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all series that it reads."""
        return tuple(sorted(self._names))

    def _read_rows(
        self, text: str, *, most: int
    ) -> tuple[dict[_CardKey, list[float | None]], list[RejectedReading]]:
        """The numbers of each card by slot. The loop over samples: what is usual is done in place."""
        passed, slots = self._ignored_names, self._single_slots
        rows: dict[_CardKey, list[float | None]] = {}
        row_of: dict[str, list[float | None]] = {}
        beyond = 0
        for line in text.split("\n"):
            name, brace, rest = line.partition("{")
            slot = slots.get(name)
            if slot is not None and brace:
                block, _, tail = rest.rpartition("}")
                row = row_of.get(block)
                if row is not None:
                    try:
                        row[slot] = (
                            float(tail) if "_" not in tail else _parse_sample_value(tail, line)
                        )
                    except ValueError:
                        row[slot] = _parse_sample_value(tail, line)
                    continue
            elif name in passed or not line or line[0] == "#":
                continue
            beyond += self._parse_line(line, row_of, rows, most=most)
        refused = []
        if beyond:
            refused.append(
                RejectedReading(
                    what="cards",
                    reason=Reason(
                        "telemetry_source.sample.too_many_cards",
                        "more than {limit} cards in one response",
                        limit=most,
                    ),
                    count=beyond,
                )
            )
        return rows, refused

    def _parse_line(
        self,
        line: str,
        row_of: dict[str, list[float | None]],
        rows: dict[_CardKey, list[float | None]],
        *,
        most: int,
    ) -> int:
        """Any line at all. Says how many cards were too many: one or none."""
        bare = line.strip()
        if not bare or bare[0] == "#":
            return 0
        name, block, tail = _split_line(bare)
        if not _NAME.fullmatch(name):
            raise MalformedExposition(line)
        value = _parse_sample_value(tail, line)
        parts = self._names.get(name)
        if parts is None:
            self._parse_labels(block, line)
            if line.startswith(name + "{"):
                self._ignored_names.add(name)
            return 0
        card = self._parse_card_labels(block, line)
        if card is None:
            return 0
        if card not in rows:
            if len(rows) >= most:
                return 1
            rows[card] = [None] * len(self._slots)
        row = row_of[block] = rows[card]
        for slot in self._slots_of_metric(name, block, line):
            row[slot] = value
        return 0

    def _parse_card_labels(self, block: str, line: str) -> _CardKey | None:
        """Whose labels they are, remembered; None if they are no whole card's."""
        known = self._cards.get(block, _UNKNOWN)
        if not isinstance(known, _UnknownLabels):
            return known
        card = self._cards[block] = self._card_of_labels(self._parse_labels(block, line))
        return card

    def _card_of_labels(self, labels: Mapping[str, str]) -> _CardKey | None:
        if labels.get(self._exporter.slice_label):
            return None
        index, serial = labels.get(self._exporter.index_label, ""), ""
        if self._exporter.card_label:
            serial = labels.get(self._exporter.card_label, "")[:80]
        place = int(index) if _INDEX.fullmatch(index) else None
        if place is None and not serial:
            return None
        node = labels.get(self._exporter.node_label, "")
        return _CardKey(node=node, index=place, serial=serial)

    def _labels_of_line(self, block: str, line: str) -> Mapping[str, str]:
        labels = self._labels.get(block)
        if labels is None:
            labels = self._labels[block] = self._parse_labels(block, line)
        return labels

    def _parse_labels(self, block: str, line: str) -> Mapping[str, str]:
        """:raises MalformedExposition: if they are written in another way, or are too long."""
        labels, place = {}, 0
        end = len(block.rstrip())
        if end > LONGEST_LABELS:
            raise MalformedExposition(f"{line[:80]}… ({end} characters of labels)")
        while place < end:
            found = _LABEL.match(block, place)
            if found is None:
                raise MalformedExposition(line)
            value = found[2]
            if "\\" in value:
                value = _ESCAPED.sub(lambda escape: _ESCAPES.get(escape[1], escape[1]), value)
            labels[found[1]] = value
            place = found.end()
        return labels

    def _build_reading(
        self, card: _CardKey, values: Sequence[float | None], *, node: str, at: datetime
    ) -> CardMetricsReading:
        metrics = {}
        for metric, series, slots in self._metrics:
            if len(slots) == 1:
                value = values[slots[0]]
                if value is not None and value not in series.absent:
                    metrics[metric] = value * series.scale
            else:
                parts = [value for slot in slots if (value := values[slot]) is not None]
                # A sum of which a part is missing is no sum.
                if len(parts) == len(slots):
                    metrics[metric] = sum(parts) * series.scale
        return CardMetricsReading(
            node=node,
            index=card.index,
            at=at,
            metrics=metrics,
            serial=card.serial,
            faults=self._fault_codes([values[slot] for slot in self._faults]),
            vendor=self._vendor,
        )

    def _fault_codes(self, values: Iterable[float | None]) -> tuple[str, ...] | None:
        printed = [value for value in values if value is not None]
        if not printed:
            return None
        codes = {
            f"{int(value):08X}" if self._exporter.fault_base == _HEXADECIMAL else str(int(value))
            for value in printed
            if 1 <= value < _LARGEST_CODE
        }
        return tuple(sorted(codes))


def _metric_name(card: _CardKey) -> str:
    return card.serial or Reason(
        "telemetry_source.sample.card_name", "card {index}", index=card.index
    )


def _split_line(line: str) -> tuple[str, str, str]:
    """Name, the text between braces, and what follows. By hand: a regular expression could backtrack for hours."""
    name, brace, rest = line.partition("{")
    if brace:
        block, brace, tail = rest.rpartition("}")
        return (name.rstrip(), block, tail) if brace else ("", "", "")
    fields = line.split(None, 1)
    return fields[0], "", fields[-1] if len(fields) > 1 else ""


def _parse_sample_value(tail: str, line: str) -> float:
    """The value at the end of a line, behind which there may be a time.

    :raises MalformedExposition: if it is none.
    """
    fields = tail.split()
    try:
        if len(fields) == 2:
            int(fields[1])
        elif len(fields) != 1:
            raise ValueError(tail)
        if "_" in tail:
            raise ValueError(tail)
        return float(fields[0])
    except ValueError:
        raise MalformedExposition(line) from None


@cache
def exposition_reader_of_vendor(vendor: str) -> ExpositionReader:
    """What reads texts with that vendor's names.

    :raises AdapterNotFound: if no plug-in is of that vendor, or none of its exporter's names are known.
    """
    plugin = adapter_registry.chip_plugins().get(vendor)
    exporter = plugin.profile().exporter if plugin is not None else None
    if exporter is None or not exporter.series:
        known = ", ".join(adapter_registry.telemetry_vendors()) or NONE
        raise adapter_registry.AdapterNotFound(
            "telemetry_source.exporter.unknown",
            "no exporter of {vendor} is known; known vendors: {vendors}",
            vendor=repr(vendor),
            vendors=known,
        )
    return ExpositionReader(exporter, vendor=vendor)
