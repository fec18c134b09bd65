"""Sheets of figures are judged by the same rules as readings, in columns.

A sheet is taken as a whole or not at all: one that holds anything to be refused or looked into, be it a single
number, is taken apart into readings, and those are judged one by one. So what is refused is counted in one place.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np

from apps.monitoring.services.figures import METRICS, Columns, Row
from apps.monitoring.services.places import Places
from controlplane.domain.sheets import Numbers, Sheet
from controlplane.domain.telemetry import MEASURES, Metric, Reading

#: A source's clock may be that much ahead of ours, and its news that old.
AHEAD, OLD = timedelta(minutes=1), timedelta(days=1)
#: Below it a number is no measurement, and would not fit a column of single precision.
TINY = 1e-30


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """A sheet with nothing in it to be refused, and which cards it is about."""

    sheet: Sheet
    cards: Sequence[int]

    def faulty(self) -> Iterator[int]:
        """Cards with codes of faults."""
        return (self.cards[place] for place in self.sheet.faults)

    def of(self, cards: Container[int], *, at: datetime) -> Iterator[tuple[Row, Reading]]:
        """What it says of those of the cards that are in it; ``at`` as in ``columns_of_sheets``."""
        for place, card in enumerate(self.cards):
            if card in cards:
                reading = self.sheet.reading(place)
                values = [reading.figures.get(metric) for metric in METRICS]
                row = Row(card=card, at=min(reading.at, at), serial=reading.serial, values=values)
                yield row, reading


def sheets_judge(
    *, sheets: Sequence[Sheet], readings: Sequence[Reading], places: Places, at: datetime
) -> tuple[list[Taken], list[Reading]]:
    """The sheets that can be kept as they are; and all that is to be judged one by one, ``readings`` before it."""
    taken, others = [], list(readings)
    for sheet in sheets:
        cards = _cards_of(sheet, places) if at - OLD <= sheet.at <= at + AHEAD else None
        if cards is None:
            others += sheet.readings()
        else:
            taken.append(Taken(sheet=sheet, cards=cards))
    good = []
    for one, is_good in zip(taken, _possible(taken), strict=True):
        if is_good:
            good.append(one)
        else:
            others += one.sheet.readings()
    if not _is_once(good, others, places):
        return [], [*others, *(one for each in good for one in each.sheet.readings())]
    return good, others


def columns_of_sheets(taken: Sequence[Taken], *, at: datetime) -> Columns:
    """What is kept of them; a clock that is a little ahead is set right to ``at``."""
    return Columns(
        cards=[card for one in taken for card in one.cards],
        at=[instant for one in taken for instant in [min(one.sheet.at, at)] * len(one.cards)],
        serials=[whose.serial for one in taken for whose in one.sheet.whose],
        values={
            metric: np.where(np.abs(column) < TINY, 0.0, column)
            for metric in _metrics(taken)
            for column in (_column(taken, metric),)
        },
    )


def _cards_of(sheet: Sheet, places: Places) -> list[int] | None:
    """None if one is not known, or bears another serial number than before."""
    cards = []
    for whose in sheet.whose:
        card = places.card(node=whose.node, index=whose.index, serial=whose.serial)
        said = places.said.get(card) if card is not None else None
        if card is None or (whose.serial and (said is None or said.serial != whose.serial)):
            return None
        cards.append(card)
    return cards


def _possible(taken: Sequence[Taken]) -> list[bool]:
    """Which of them hold numbers that cards can have, and at least something of each card."""
    if not taken:
        return []
    wrong = np.zeros(sum(len(one.cards) for one in taken), dtype=np.bool_)
    says = np.concatenate([one.sheet.speaks for one in taken])
    for metric in _metrics(taken):
        column, measure = _column(taken, metric), MEASURES[metric]
        wrong |= (column < measure.lowest) | (column > measure.highest)
        says |= ~np.isnan(column)
    firsts = np.cumsum([0, *(len(one.cards) for one in taken[:-1])])
    return [not one for one in np.logical_or.reduceat(wrong | ~says, firsts).tolist()]


def _metrics(taken: Sequence[Taken]) -> list[Metric]:
    told = {metric for one in taken for metric in one.sheet.figures}
    return [metric for metric in METRICS if metric in told]


def _column(taken: Sequence[Taken], metric: Metric) -> Numbers:
    """One figure of all cards of all of them."""
    return np.concatenate(
        [
            column if (column := one.sheet.figures.get(metric)) is not None else _nothing(one)
            for one in taken
        ]
    )


def _nothing(one: Taken) -> Numbers:
    return np.full(len(one.cards), np.nan)


def _is_once(taken: Sequence[Taken], others: Sequence[Reading], places: Places) -> bool:
    """Whether each card of the sheets is told of once: else it has to be seen what is the newest."""
    cards = [card for one in taken for card in one.cards]
    known = set(cards)
    return len(known) == len(cards) and not any(
        places.card(node=one.node, index=one.index, serial=one.serial) in known for one in others
    )
