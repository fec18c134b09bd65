"""How figures are written: one statement for all cards of a batch, whatever their number.

The newest values of a card and the history are written together, from lists of columns that PostgreSQL reads as
arrays. Values go over as text: putting numbers into a text is quicker than describing them one by one to a driver.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

import numpy as np
from django.db import IntegrityError, connection, transaction
from psycopg.errors import CheckViolation

from apps.monitoring.services import history
from controlplane.domain.sheets import Numbers
from controlplane.domain.telemetry import Metric

#: One column for each, in this order.
METRICS: tuple[Metric, ...] = tuple(Metric)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Checked figures of one card at one moment."""

    card: int
    at: datetime
    #: Printable.
    serial: str
    #: In the order of ``METRICS``; None where it was not measured.
    values: Sequence[float | None]


_NAMES = ", ".join(metric.value for metric in METRICS)
_TAKEN = ", ".join(f"{metric.value} = EXCLUDED.{metric.value}" for metric in METRICS)
_ARRAYS = ", ".join(["%s::float8[]"] * len(METRICS))
#: A card that went away meanwhile is left out.
_GIVEN = f"""
    SELECT given.*
      FROM unnest(%s::bigint[], %s::timestamptz[], %s::text[], {_ARRAYS})
           AS given (card_id, at, serial, {_NAMES})
      JOIN fleet_card AS card ON card.id = given.card_id
"""  # noqa: S608 - made of names of columns alone
_KEEP = f"""
    INSERT INTO monitoring_history (card_id, at, {_NAMES})
    SELECT card_id, at, {_NAMES} FROM given
        ON CONFLICT DO NOTHING
"""  # noqa: S608 - made of names of columns alone
_WRITE_BEHIND = f"WITH given AS ({_GIVEN}) {_KEEP}"
#: The rows are locked in one order by whoever writes them.
_WRITE = f"""
WITH given AS ({_GIVEN}), kept AS ({_KEEP})
INSERT INTO monitoring_cardfigures AS newest
       (card_id, at, serial, {_NAMES}, source_id, received_at)
SELECT card_id, at, serial, {_NAMES}, %s, %s
  FROM given
 ORDER BY card_id
    ON CONFLICT (card_id) DO UPDATE
   SET at = EXCLUDED.at, source_id = EXCLUDED.source_id, received_at = EXCLUDED.received_at,
       serial = CASE EXCLUDED.serial WHEN '' THEN newest.serial ELSE EXCLUDED.serial END, {_TAKEN}
 WHERE EXCLUDED.at > newest.at
RETURNING card_id
"""  # noqa: S608 - made of names of columns alone


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Columns:
    """The same of many cards: no card twice."""

    cards: Sequence[int]
    at: Sequence[datetime]
    serials: Sequence[str]
    #: Numbers of each card in its order; NaN where it was not measured, and no column where nothing at all was.
    values: Mapping[Metric, Numbers]


NOTHING = Columns(cards=(), at=(), serials=(), values={})


def columns_of(rows: Sequence[Row]) -> Columns:
    grid = np.array([row.values for row in rows], dtype=np.float64).T
    return Columns(
        cards=[row.card for row in rows],
        at=[row.at for row in rows],
        serials=[row.serial for row in rows],
        values=dict(zip(METRICS, grid, strict=True)) if rows else {},
    )


def joined(parts: Sequence[Columns]) -> Columns:
    """One below the other."""
    parts = [part for part in parts if part.cards] or [NOTHING]
    if len(parts) == 1:
        return parts[0]
    return Columns(
        cards=[card for part in parts for card in part.cards],
        at=[at for part in parts for at in part.at],
        serials=[serial for part in parts for serial in part.serials],
        values={
            metric: np.concatenate(
                [part.values.get(metric, np.full(len(part.cards), np.nan)) for part in parts]
            )
            for metric in METRICS
            if any(metric in part.values for part in parts)
        },
    )


def figures_write(
    *, columns: Columns, source: int, received_at: datetime, behind: bool = False
) -> frozenset[int]:
    """Keep figures: in the history all of them, as the newest of their card where they are. Says whose were.

    Those that are ``behind`` go to the history alone: newer ones came before them. Written again they change
    nothing.
    """
    if not columns.cards:
        return frozenset()
    # Most of a batch was measured at the same moment.
    instants = {at: _instant(at) for at in set(columns.at)}
    parameters: list[Any] = [
        _array(map(str, columns.cards)),
        _array(map(instants.__getitem__, columns.at)),
        _texts(columns.serials),
        *(_numbers(columns.values.get(metric)) for metric in METRICS),
    ]
    write = _execute_behind if behind else partial(_execute, newest=[source, received_at])
    try:
        newest = write(parameters)
    except IntegrityError as error:
        if not isinstance(error.__cause__, CheckViolation):
            raise
        # There is no partition for one of those days yet.
        history.days_prepare(days={at.astimezone(UTC).date() for at in instants})
        newest = write(parameters)
    return newest


def _execute(given: Sequence[Any], *, newest: Sequence[Any]) -> frozenset[int]:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_WRITE, [*given, *newest])
        return frozenset(card for (card,) in cursor.fetchall())


def _execute_behind(given: Sequence[Any]) -> frozenset[int]:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_WRITE_BEHIND, given)
    return frozenset()


def _array(texts: Iterable[str]) -> str:
    return "{" + ",".join(texts) + "}"


def _texts(serials: Sequence[str]) -> str:
    # They are printable, so none of them holds the line's end that stands between them.
    lines = "\n".join(serials).replace("\\", r"\\").replace('"', r"\"")
    return '{"' + lines.replace("\n", '","') + '"}'


def _numbers(column: Numbers | None) -> str | None:
    # What is missing at the end of an array is null, and so is all of one that is not there.
    return None if column is None else _array(map(repr, column.tolist())).replace("nan", "NULL")


def _instant(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
