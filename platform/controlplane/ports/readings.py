"""Figures of cards out of what an exporter prints: a pure function over the Prometheus text format 0.0.4.

Which series stands for which figure only the vendor's ``Exporter`` says, so one reader serves every vendor::

    DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-1b",Hostname="n1"} 97
    └──────┬───────────┘└───────────────┬───────────────────┘ └┬┘
     which figures               which card             times ``scale``

A card prints the same labels with each of its series, scrape after scrape. So a text between braces is taken apart
once and known again by itself; what is left to do for a sample is to find two texts in tables and read a number.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum, auto

import numpy as np

from controlplane.domain.sheets import Whose
from controlplane.domain.telemetry import Metric, Reading
from controlplane.ports.chips import Exporter, Series
from controlplane.ports.forms import Column, Form, outline_of
from controlplane.ports.telemetry import Batch, Refusal

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


class MalformedExposition(ValueError):
    """What was printed is not the Prometheus text format; the message shows the line."""

    def __init__(self, line: str) -> None:
        super().__init__(f"not the Prometheus text format: {line[:120]!r}")


@dataclass(frozen=True, slots=True)
class _Card:
    """Whose series they are, as their labels say."""

    node: str
    index: int | None
    serial: str


class _Unknown(Enum):
    """Labels that were not met before, which is something else than labels of no card."""

    UNKNOWN = auto()


_UNKNOWN = _Unknown.UNKNOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One number of one series, however it came."""

    name: str
    labels: Mapping[str, str]
    value: float
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """A place in a card's row of numbers, filled by a series that bears those labels."""

    slot: int
    labels: tuple[tuple[str, str], ...]


class Reader:
    """Reads texts with one vendor's names. Keep it: it recognises cards that it has read before."""

    def __init__(self, exporter: Exporter, *, vendor: str) -> None:
        self._exporter = exporter
        self._vendor = vendor
        self._names: dict[str, tuple[_Part, ...]] = {}
        self._slots: dict[tuple[str, tuple[tuple[str, str], ...]], int] = {}
        self._figures = [
            (Metric(figure), series, tuple(self._slot(name, series) for name in series.names))
            for figure, series in exporter.series.items()
            if figure != FAULT
        ]
        fault = exporter.series.get(FAULT)
        self._faults = tuple(self._slot(name, fault) for name in fault.names) if fault else ()
        #: Names that fill one place, whatever their labels.
        self._alone = {
            name: parts[0].slot
            for name, parts in self._names.items()
            if len(parts) == 1 and not parts[0].labels
        }
        self._cards: dict[str, _Card | None] = {}
        self._labels: dict[str, Mapping[str, str]] = {}
        self._passed: set[str] = set()

    def _slot(self, name: str, series: Series) -> int:
        labels = tuple(sorted(series.labels.items()))
        slot = self._slots.setdefault((name, labels), len(self._slots))
        parts = self._names.get(name, ())
        if all(part.slot != slot for part in parts):
            self._names[name] = (*parts, _Part(slot=slot, labels=labels))
        return slot

    def read(
        self, text: str, *, at: datetime, node: str = "", by_label: bool = True, most: int = 100_000
    ) -> Batch:
        """One reading for each card, in the order in which the text has them; other series are passed over.

        ``node`` is whose figures they are where no label says so, and with ``by_label`` off in any case. Of more
        than ``most`` cards the rest is refused. Numbers are not judged here: they may be impossible ones.

        :raises MalformedExposition: if the text is in another format.
        """
        # Whoever fills these up cannot make them grow for ever.
        if len(self._cards) > _REMEMBERED:
            self._cards.clear()
            self._labels.clear()
        if len(self._passed) > _REMEMBERED:
            self._passed.clear()
        rows, refused = self._rows(text, most=most)
        readings = []
        for card, values in rows.items():
            whose = card.node if by_label and card.node else node
            if whose:
                readings.append(self._reading(card, values, node=whose, at=at))
            else:
                refused.append(Refusal(what=_name_of(card), why="nothing says which node it is in"))
        return Batch(readings=tuple(readings), refused=tuple(refused))

    def gather(
        self, samples: Iterable[Sample], *, node_of: Callable[[Mapping[str, str]], str]
    ) -> Batch:
        """The same out of samples that somebody else took apart; a card's time is that of its newest one."""
        rows: dict[_Card, list[float | None]] = {}
        newest: dict[_Card, datetime] = {}
        for sample in samples:
            parts = self._names.get(sample.name, ())
            card = self._whose(sample.labels) if parts else None
            if card is None:
                continue
            card = replace(card, node=node_of(sample.labels))
            row = rows.setdefault(card, [None] * len(self._slots))
            newest[card] = max(sample.at, newest.get(card, sample.at))
            for part in parts:
                if all(sample.labels.get(label) == wanted for label, wanted in part.labels):
                    row[part.slot] = sample.value
        return Batch(
            readings=tuple(
                self._reading(card, values, node=card.node, at=newest[card])
                for card, values in rows.items()
                if card.node
            ),
            refused=tuple(
                Refusal(what=_name_of(card), why="nothing says which node it is in")
                for card in rows
                if not card.node
            ),
        )

    def form_of(self, text: str, *, node: str = "", by_label: bool = True) -> Form | None:
        """How the next text is known again that differs from this one in its numbers alone.

        None where that is not worth it: if it has blank lines, cards of unknown nodes, or none at all.
        """
        outline = outline_of(text, names=self._names)
        if outline is None:
            return None
        cards: dict[_Card, dict[int, int]] = {}
        for number, head in enumerate(outline.heads):
            name, _, rest = head.partition("{")
            block, end, _ = rest.rpartition("}")
            card = self._card(block, head) if end else None
            if card is not None:
                slots = cards.setdefault(card, {})
                slots.update(dict.fromkeys(self._slots_of(name, block, head), number))
        whose = tuple(
            Whose(card.node if by_label and card.node else node, card.index, card.serial)
            for card in cards
        )
        if not whose or not all(one.node and one.serial.isprintable() for one in whose):
            return None
        places = np.full((len(self._slots), len(whose)), len(outline.heads), dtype=np.intp)
        for column, slots in enumerate(cards.values()):
            places[list(slots), column] = list(slots.values())
        return Form(
            outline=outline,
            whose=whose,
            places=places,
            columns=tuple(
                Column(metric=metric, slots=slots, absent=series.absent, scale=series.scale)
                for metric, series, slots in self._figures
            ),
            faults=self._faults,
            codes_of=lambda values: self._codes(values) or (),
            vendor=self._vendor,
        )

    def _slots_of(self, name: str, block: str, line: str) -> Iterator[int]:
        """Places in a card's row that this series fills."""
        parts = self._names[name]
        labels = self._labels_of(block, line) if any(part.labels for part in parts) else {}
        for part in parts:
            if all(labels.get(label) == wanted for label, wanted in part.labels):
                yield part.slot

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all series that it knows."""
        return tuple(sorted(self._names))

    def _rows(
        self, text: str, *, most: int
    ) -> tuple[dict[_Card, list[float | None]], list[Refusal]]:
        """The numbers of each card by slot. The loop over samples: what is usual is done in place."""
        passed, slots = self._passed, self._alone
        rows: dict[_Card, list[float | None]] = {}
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
                        row[slot] = float(tail) if "_" not in tail else _number(tail, line)
                    except ValueError:
                        row[slot] = _number(tail, line)
                    continue
            elif name in passed or not line or line[0] == "#":
                continue
            beyond += self._slow(line, row_of, rows, most=most)
        refused = []
        if beyond:
            refused.append(Refusal(what="cards", why=f"more than {most} in one text", count=beyond))
        return rows, refused

    def _slow(
        self,
        line: str,
        row_of: dict[str, list[float | None]],
        rows: dict[_Card, list[float | None]],
        *,
        most: int,
    ) -> int:
        """Any line at all. Says how many cards were too many: one or none."""
        bare = line.strip()
        if not bare or bare[0] == "#":
            return 0
        name, block, tail = _taken_apart(bare)
        if not _NAME.fullmatch(name):
            raise MalformedExposition(line)
        value = _number(tail, line)
        parts = self._names.get(name)
        if parts is None:
            self._labels_in(block, line)
            if line.startswith(name + "{"):
                self._passed.add(name)
            return 0
        card = self._card(block, line)
        if card is None:
            return 0
        if card not in rows:
            if len(rows) >= most:
                return 1
            rows[card] = [None] * len(self._slots)
        row = row_of[block] = rows[card]
        for slot in self._slots_of(name, block, line):
            row[slot] = value
        return 0

    def _card(self, block: str, line: str) -> _Card | None:
        """Whose labels they are, remembered; None if they are no whole card's."""
        known = self._cards.get(block, _UNKNOWN)
        if not isinstance(known, _Unknown):
            return known
        card = self._cards[block] = self._whose(self._labels_in(block, line))
        return card

    def _whose(self, labels: Mapping[str, str]) -> _Card | None:
        if labels.get(self._exporter.slice_label):
            return None
        index, serial = labels.get(self._exporter.index_label, ""), ""
        if self._exporter.card_label:
            serial = labels.get(self._exporter.card_label, "")[:80]
        place = int(index) if _INDEX.fullmatch(index) else None
        if place is None and not serial:
            return None
        node = labels.get(self._exporter.node_label, "")
        return _Card(node=node, index=place, serial=serial)

    def _labels_of(self, block: str, line: str) -> Mapping[str, str]:
        labels = self._labels.get(block)
        if labels is None:
            labels = self._labels[block] = self._labels_in(block, line)
        return labels

    def _labels_in(self, block: str, line: str) -> Mapping[str, str]:
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

    def _reading(
        self, card: _Card, values: Sequence[float | None], *, node: str, at: datetime
    ) -> Reading:
        figures = {}
        for metric, series, slots in self._figures:
            if len(slots) == 1:
                value = values[slots[0]]
                if value is not None and value not in series.absent:
                    figures[metric] = value * series.scale
            else:
                parts = [value for slot in slots if (value := values[slot]) is not None]
                # A sum of which a part is missing is no sum.
                if len(parts) == len(slots):
                    figures[metric] = sum(parts) * series.scale
        return Reading(
            node=node,
            index=card.index,
            at=at,
            figures=figures,
            serial=card.serial,
            faults=self._codes([values[slot] for slot in self._faults]),
            vendor=self._vendor,
        )

    def _codes(self, values: Iterable[float | None]) -> tuple[str, ...] | None:
        printed = [value for value in values if value is not None]
        if not printed:
            return None
        codes = {
            f"{int(value):08X}" if self._exporter.fault_base == _HEXADECIMAL else str(int(value))
            for value in printed
            if 1 <= value < _LARGEST_CODE
        }
        return tuple(sorted(codes))


def _name_of(card: _Card) -> str:
    return card.serial or f"card {card.index}"


def _taken_apart(line: str) -> tuple[str, str, str]:
    """Name, what is between braces, and what follows. By hand: a pattern could be made to try for hours."""
    name, brace, rest = line.partition("{")
    if brace:
        block, brace, tail = rest.rpartition("}")
        return (name.rstrip(), block, tail) if brace else ("", "", "")
    words = line.split(None, 1)
    return words[0], "", words[-1] if len(words) > 1 else ""


def _number(tail: str, line: str) -> float:
    """The value at the end of a line, behind which there may be a time.

    :raises MalformedExposition: if it is none.
    """
    words = tail.split()
    try:
        if len(words) == 2:
            int(words[1])
        elif len(words) != 1:
            raise ValueError(tail)
        if "_" in tail:
            raise ValueError(tail)
        return float(words[0])
    except ValueError:
        raise MalformedExposition(line) from None
