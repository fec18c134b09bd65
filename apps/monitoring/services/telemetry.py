"""Figures come in: judged, kept once, and what they say of faults passed on.

::

    Reading ──whose card?──believable time?──possible values?──▶ Row ──▶ newest and history, one statement
      ▲ └── codes, serial numbers of those that are the newest ─────────▶ Signal ──▶ faults
      └─ Sheet with anything unusual in it; one without is kept as it is (``sheets``)

Nothing that comes from outside is believed: what is refused is counted and said in words, and spoils nothing else
of its batch. A batch that comes again changes nothing: no row, no fault, no time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.db import connection, transaction

from apps.fleet.models import Cluster
from apps.fleet.services.card_availability import SerialChange, card_serials_record
from apps.monitoring.models import Source
from apps.monitoring.services.faults import signals_record
from apps.monitoring.services.figures import METRICS, Row, columns_of, figures_write, joined
from apps.monitoring.services.history import hour_of, hours_reopen
from apps.monitoring.services.places import Places, places_forget, places_of
from apps.monitoring.services.sheets import AHEAD, OLD, TINY, columns_of_sheets, sheets_judge
from controlplane.domain.faults import FaultLevel
from controlplane.domain.health.signals import Origin, Signal
from controlplane.domain.sheets import Sheet
from controlplane.domain.telemetry import MEASURES, Reading
from controlplane.ports import registry
from controlplane.ports.telemetry import RejectedReading

#: How many different reasons are kept in words.
TOLD = 20
#: Our own notes about cards, beside their makers' codes.
REPLACED, MOVED = "card-replaced", "card-moved"
_OURS = frozenset({REPLACED, MOVED})
#: Written out, for to put together what each batch asks takes longer than its answer.
_STANDING = """
SELECT fault.card_id, fault.code, fault.level
  FROM monitoring_fault AS fault
  JOIN fleet_node AS node ON node.id = fault.node_id
 WHERE fault.ended_at IS NULL AND fault.card_id IS NOT NULL AND fault.origin = %s
   AND node.cluster_id = %s AND (%s::text IS NULL OR node.name = %s)
"""
_BOUNDS = tuple((metric, MEASURES[metric].lowest, MEASURES[metric].highest) for metric in METRICS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What became of a batch."""

    #: Cards whose figures were good, and of these those whose newest they are.
    cards: int = 0
    newest: int = 0
    #: Cards and values that were not kept, and why.
    refused: int = 0
    refusals: tuple[str, ...] = ()
    signals: int = 0


@dataclass(slots=True)
class _Refused:
    """Counts what is refused; of each reason one example is told."""

    count: int = 0
    told: dict[str, str] = field(default_factory=dict)
    times: Counter[str] = field(default_factory=Counter)

    def add(self, *, why: str, what: str, count: int = 1) -> None:
        self.count += count
        if why in self.told or len(self.told) < TOLD:
            self.told.setdefault(why, what)
            self.times[why] += count

    def words(self) -> tuple[str, ...]:
        return tuple(
            _counted(why, what=what, times=self.times[why]) for why, what in self.told.items()
        )


def _counted(why: str, *, what: str, times: int) -> str:
    # What came from outside is shown in plain ASCII: it may hold anything.
    return f"{times}× {why} (such as {what[:60]!a})"


@transaction.atomic(savepoint=False)
def readings_record(
    *,
    source: Source,
    readings: Sequence[Reading],
    at: datetime,
    sheets: Sequence[Sheet] = (),
    origin: Origin = Origin.EXPORTER,
    node: str | None = None,
    refused: Iterable[RejectedReading] = (),
    behind: bool = False,
) -> Recorded:
    """Keep what a source told of its cluster's cards, now. Says what became of it.

    With ``node`` it speaks for that node alone, in readings, and what it says of others is refused. What the
    adapter refused before is counted too. What is ``behind`` newer news of the same voice says nothing of now: it
    goes to the history alone.
    """
    notes = _Refused()
    for one in refused:
        notes.add(why=one.why, what=one.what, count=one.count)
    cluster = source.cluster
    taken, others = sheets_judge(
        sheets=sheets, readings=readings, places=places_of(cluster.pk), at=at
    )
    told = _told_of(others, {}, cluster=cluster, node=node, notes=notes)
    if told and any(card in told for one in taken for card in one.cards):
        # The places were read anew since the sheets were judged, and a reading turned out to be of their cards.
        apart = [reading for one in taken for reading in one.sheet.readings()]
        told, taken = _told_of(apart, told, cluster=cluster, node=node, notes=notes), []
    rows = {}
    for card, reading in told.items():
        row = _row(card, reading, at=at, notes=notes)
        if row is not None:
            rows[card] = row
    renumbered = _renumbered(rows.values(), source=source)
    columns = joined([columns_of_sheets(taken, at=at), columns_of(list(rows.values()))])
    newest = figures_write(columns=columns, source=source.pk, received_at=at, behind=behind)
    late = {hour for each in set(columns.at) if (hour := hour_of(each)) < hour_of(at)}
    if late:
        hours_reopen(hours=late)
    renumbered = {card: one for card, one in renumbered.items() if card in newest}
    if renumbered:
        card_serials_record(serials=renumbered)
        transaction.on_commit(lambda: places_forget(cluster.pk))
    stood = _standing(cluster, origin=origin, node=node) if newest else {}
    looked_at = newest & (stood.keys() | {card for one in taken for card in one.faulty()})
    signals = _signals(
        [
            *((rows[card], told[card]) for card in newest if card in rows),
            *(pair for one in taken for pair in one.of(looked_at, at=at)),
        ],
        stood=stood,
        renumbered={card: one for card, one in renumbered.items() if one.before},
        cluster=cluster,
        origin=origin,
    )
    if signals:
        signals_record(signals=signals, at=at)
    return Recorded(
        cards=len(columns.cards),
        newest=len(newest),
        refused=notes.count,
        refusals=notes.words(),
        signals=len(signals),
    )


def _told_of(
    readings: Sequence[Reading],
    before: Mapping[int, Reading],
    *,
    cluster: Cluster,
    node: str | None,
    notes: _Refused,
) -> dict[int, Reading]:
    """The newest reading of each card that is known, with those from before."""
    places = places_of(cluster.pk)
    told = dict(before)
    for reading in readings:
        if node is not None and reading.node != node:
            notes.add(why="it speaks of another node", what=reading.node)
            continue
        card = places.card(node=reading.node, index=reading.index, serial=reading.serial)
        if card is None:
            places = places_of(cluster.pk, anew=True)
            card = places.card(node=reading.node, index=reading.index, serial=reading.serial)
        if card is None:
            known = reading.node in places.nodes
            why = "the node has no such card" if known else "the cluster has no such node"
            notes.add(why=why, what=f"{reading.node}/{reading.index} {reading.serial}".rstrip())
        elif card not in told or reading.at > told[card].at:
            told[card] = reading
    return told


def _row(card: int, reading: Reading, *, at: datetime, notes: _Refused) -> Row | None:
    """The figures that can be, at a time that can be; None if nothing is left."""
    if reading.at > at + AHEAD:
        notes.add(why="its time is more than a minute ahead of ours", what=reading.at.isoformat())
        return None
    if reading.at < at - OLD:
        notes.add(why="it is more than a day old", what=reading.at.isoformat())
        return None
    values: list[float | None] = []
    figures, some = reading.figures, reading.faults is not None
    for metric, lowest, highest in _BOUNDS:
        value = figures.get(metric)
        if value is None:
            values.append(None)
        elif type(value) in (float, int) and lowest <= value <= highest:
            values.append(value if abs(value) >= TINY else 0.0)
            some = True
        else:
            notes.add(why=f"no {metric.value} of a card can be that", what=_shown(value))
            values.append(None)
    if not some:
        notes.add(why="nothing is said of the card", what=f"{reading.node}/{reading.index}")
        return None
    serial = reading.serial if reading.serial.isprintable() else ""
    # A clock that is a little ahead is set right: nothing was measured after it came.
    return Row(card=card, at=min(reading.at, at), serial=serial[:80], values=values)


def _shown(value: object) -> str:
    return str(value) if isinstance(value, float | str | bool) else type(value).__name__


def _renumbered(rows: Collection[Row], *, source: Source) -> dict[int, SerialChange]:
    """Cards that say another serial number than they did, or one for the first time."""
    found = _renumbered_in(rows, places_of(source.cluster_id), source=source)
    if any(one.before for one in found.values()):
        # Another process may have noticed it already.
        places_forget(source.cluster_id)
        found = _renumbered_in(rows, places_of(source.cluster_id), source=source)
    return found


def _renumbered_in(
    rows: Collection[Row], places: Places, *, source: Source
) -> dict[int, SerialChange]:
    found = {}
    for row in rows:
        said = places.said.get(row.card)
        if row.serial and (said is None or said.serial != row.serial):
            # Two sources may have two ways to number: what one says is compared with what it said itself.
            same = said is not None and said.source == source.pk
            before = said.serial if same and said is not None else ""
            found[row.card] = SerialChange(before=before, after=row.serial)
    return found


def _signals(
    current: Sequence[tuple[Row, Reading]],
    *,
    stood: Mapping[int, Mapping[str, FaultLevel]],
    renumbered: Mapping[int, SerialChange],
    cluster: Cluster,
    origin: Origin,
) -> list[Signal]:
    """What the newest readings say of faults: of those that stand, and of those that stood and are gone."""
    places = places_of(cluster.pk)
    signals = []
    for row, reading in current:
        levels, messages = _levels(reading), {}
        if row.card in renumbered:
            code, messages[code] = _note_of(row.card, renumbered[row.card], places)
            levels[code] = FaultLevel.NOTE
        gone = {
            code: level
            for code, level in stood.get(row.card, {}).items()
            if code not in levels and (code in _OURS or reading.faults is not None)
        }
        place = places.of[row.card]
        signals += [
            Signal(
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


def _levels(reading: Reading) -> dict[str, FaultLevel]:
    """The codes that stand, each with what the maker's fault map says of it."""
    plugin = registry.chip_plugins().get(reading.vendor)
    if plugin is None or not reading.faults:
        return {}
    faults = plugin.profile().faults
    return {code: faults.level(code) for code in reading.faults}


def _standing(
    cluster: Cluster, *, origin: Origin, node: str | None
) -> dict[int, dict[str, FaultLevel]]:
    """Card → code → level of the faults that this origin said and has not taken back."""
    standing: dict[int, dict[str, FaultLevel]] = {}
    with connection.cursor() as cursor:
        cursor.execute(_STANDING, [origin.value, cluster.pk, node, node])
        for card, code, level in cursor.fetchall():
            standing.setdefault(card, {})[code] = FaultLevel(level)
    return standing


def _note_of(card: int, renumbered: SerialChange, places: Places) -> tuple[str, str]:
    """Our code for it, and what happened in words."""
    before = places.by_serial.get(renumbered.after)
    if before is not None and before != card:
        place = places.of[before]
        message = (
            f"the card with the serial number {renumbered.after} is here now; "
            f"it was in {place.node}, place {place.index}"
        )
        return MOVED, message
    message = f"the serial number was {renumbered.before} and is {renumbered.after} now"
    return REPLACED, message
