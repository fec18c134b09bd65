"""How figures are written: one statement for all cards of a batch, whatever their number.

The newest values of a card and the history are written together, from lists of columns that PostgreSQL reads as
arrays. Values go over as text: putting numbers into a text is quicker than describing them one by one to a driver.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.db import IntegrityError, connection, transaction
from psycopg.errors import CheckViolation

from apps.monitoring.services import history
from controlplane.domain.telemetry import Metric

#: One column for each, in this order.
METRICS: tuple[Metric, ...] = tuple(Metric)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Checked figures of one card at one moment."""

    card: int
    at: datetime
    serial: str
    #: In the order of ``METRICS``; None where it was not measured.
    values: Sequence[float | None]


_NAMES = ", ".join(metric.value for metric in METRICS)
_TAKEN = ", ".join(f"{metric.value} = EXCLUDED.{metric.value}" for metric in METRICS)
_ARRAYS = ", ".join(["%s::float8[]"] * len(METRICS))
#: A card that went away meanwhile is left out. The rows are locked in one order by whoever writes them.
_WRITE = f"""
WITH given AS (
    SELECT given.*
      FROM unnest(%s::bigint[], %s::timestamptz[], %s::text[], {_ARRAYS})
           AS given (card_id, at, serial, {_NAMES})
      JOIN fleet_card AS card ON card.id = given.card_id
), kept AS (
    INSERT INTO monitoring_history (card_id, at, {_NAMES})
    SELECT card_id, at, {_NAMES} FROM given
        ON CONFLICT DO NOTHING
)
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


def figures_write(*, rows: Sequence[Row], source: int, received_at: datetime) -> frozenset[int]:
    """Keep figures: in the history all of them, as the newest of their card where they are. Says whose were.

    No card may stand in ``rows`` twice. Written again they change nothing.
    """
    if not rows:
        return frozenset()
    # Most of a batch was measured at the same moment.
    instants = {at: _instant(at) for at in {row.at for row in rows}}
    parameters: list[Any] = [
        _array([str(row.card) for row in rows]),
        _array([instants[row.at] for row in rows]),
        [row.serial for row in rows],
        *(
            _array(["NULL" if value is None else repr(value) for value in column])
            for column in zip(*(row.values for row in rows), strict=True)
        ),
        source,
        received_at,
    ]
    try:
        return _execute(parameters)
    except IntegrityError as error:
        if not isinstance(error.__cause__, CheckViolation):
            raise
        # There is no partition for one of those days yet.
        history.days_prepare(days={row.at.astimezone(UTC).date() for row in rows})
        return _execute(parameters)


def _execute(parameters: Sequence[Any]) -> frozenset[int]:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_WRITE, parameters)
        return frozenset(card for (card,) in cursor.fetchall())


def _array(texts: Sequence[str]) -> str:
    return "{" + ",".join(texts) + "}"


def _instant(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
