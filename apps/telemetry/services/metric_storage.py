"""Storage of metrics: the latest values of each card, and the history's days and hours.

::

    metrics ──▶ telemetry_history, one partition a day ──aggregate──▶ CardHour
                       └── dropped after NINEFOLD_HISTORY_DAYS            └── deleted after NINEFOLD_HOURS_DAYS

Nothing is deleted row by row from the history: dropping a day costs the same for any number of rows.

The latest values and the history are written together, in one statement for all cards of a batch, from lists of
columns that PostgreSQL reads as arrays. Values are sent as text: formatting numbers is faster than adapting them
one by one in the driver.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from typing import Any

import numpy as np
from django.conf import settings
from django.db import IntegrityError, transaction
from psycopg import sql
from psycopg.errors import CheckViolation

from apps.telemetry.models import CardHour, SummedHour
from controlplane.domain.telemetry.metric_batches import Numbers
from controlplane.domain.telemetry.metrics import Metric
from controlplane.persistence.advisory_locks import AdvisoryLock, lock_in_transaction
from controlplane.persistence.daily_partitions import (
    daily_partition_create,
    daily_partition_days,
    daily_partition_name,
)
from controlplane.persistence.transactions import execute, fetch_rows, set_lock_timeout

#: Days for which partitions are created ahead, so that an outage of the controller for a night loses nothing.
AHEAD = 2
_HISTORY = "telemetry_history"
#: Hours that one run aggregates at most; the next one continues.
_HOURS_A_TURN = 6
_HOUR = timedelta(hours=1)


@transaction.atomic
def history_partitions_create(*, days: Collection[date]) -> int:
    """Create missing partitions of those days; return their number."""
    lock_in_transaction(AdvisoryLock.PARTITION_HISTORY)
    missing = sorted(set(days) - set(history_partition_days()))
    for day in missing:
        daily_partition_create(_HISTORY, day=day)
    return len(missing)


def history_partition_days() -> list[date]:
    """The days that have a partition, the oldest first."""
    return daily_partition_days(_HISTORY)


def metric_history_maintain(*, at: datetime) -> int:
    """One run: create partitions ahead, aggregate finished hours, drop expired days; return the hours."""
    today = at.astimezone(UTC).date()
    history_partitions_create(
        days=[today + timedelta(days=ahead) for ahead in range(-1, AHEAD + 1)]
    )
    summed = _aggregate_finished_hours(at=at)
    _drop_history_partitions(before=today - timedelta(days=settings.NINEFOLD_HISTORY_DAYS))
    oldest = at - timedelta(days=settings.NINEFOLD_HOURS_DAYS)
    CardHour.objects.filter(hour__lt=oldest).delete()
    SummedHour.objects.filter(hour__lt=oldest).delete()
    return summed


@transaction.atomic
def _drop_history_partitions(*, before: date) -> None:
    lock_in_transaction(AdvisoryLock.PARTITION_HISTORY)
    for day in history_partition_days():
        if day < before:
            # Readers do not wait long behind this statement; it is retried in the next run.
            set_lock_timeout("2s")
            name = sql.Identifier(daily_partition_name(_HISTORY, day=day))
            execute(sql.SQL("DROP TABLE {}").format(name))


def hours_lock_against_aggregation(*, hours: Collection[datetime]) -> None:
    """Prevent aggregation of those hours until the transaction ends; waits for a running one.

    Shared: several transactions may hold the same hour.
    """
    for hour in sorted(hours):
        lock_in_transaction(AdvisoryLock.SUM_HOUR, _hours_since_epoch(hour), shared=True)


def hours_mark_for_aggregation(*, hours: Collection[datetime]) -> None:
    """Mark hours with late metrics for aggregation; locks them (``hours_lock_against_aggregation``)."""
    hours_lock_against_aggregation(hours=hours)
    # Rows that are marked already are not updated, as their writers would wait for each other.
    open_already = SummedHour.objects.filter(hour__in=hours, summed_at=None)
    closed = set(hours).difference(open_already.values_list("hour", flat=True))
    SummedHour.objects.bulk_create(
        [SummedHour(hour=hour) for hour in sorted(closed)],
        update_conflicts=True,
        unique_fields=["hour"],
        update_fields=["summed_at"],
    )


def start_of_hour(at: datetime) -> datetime:
    """The beginning of the hour that an instant is in."""
    return at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def _hours_since_epoch(hour: datetime) -> int:
    """The hour's number since 1970."""
    return int(hour.timestamp()) // 3600


def _aggregate_finished_hours(*, at: datetime) -> int:
    """Finished hours that are not aggregated yet, newest first, as they are viewed most."""
    days = history_partition_days()
    if not days:
        return 0
    oldest = datetime.combine(days[0], time.min, tzinfo=UTC)
    done = set(SummedHour.objects.exclude(summed_at=None).values_list("hour", flat=True))
    hour, summed = start_of_hour(at) - _HOUR, 0
    while hour >= oldest and summed < _HOURS_A_TURN:
        if hour not in done:
            _aggregate_hour(hour, at=at)
            summed += 1
        hour -= _HOUR
    return summed


#: Column of the aggregate → expression over the history.
_SUMS = {
    "utilization_min": "min(utilization)",
    "utilization_mean": "avg(utilization)",
    "utilization_max": "max(utilization)",
    "memory_used_min": "min(memory_used)",
    "memory_used_mean": "avg(memory_used)",
    "memory_used_max": "max(memory_used)",
    "memory_total_max": "max(memory_total)",
    "temperature_min": "min(temperature)",
    "temperature_mean": "avg(temperature)",
    "temperature_max": "max(temperature)",
    "memory_temperature_max": "max(memory_temperature)",
    "power_min": "min(power)",
    "power_mean": "avg(power)",
    "power_max": "max(power)",
    "clock_min": "min(clock)",
    "clock_mean": "avg(clock)",
    "ecc_corrected_max": "max(ecc_corrected)",
    "ecc_uncorrected_max": "max(ecc_uncorrected)",
    "link_errors_max": "max(link_errors)",
    "network_errors_max": "max(network_errors)",
    "health_min": "min(health)",
}
_SUM_HOUR = """
INSERT INTO telemetry_cardhour (card_id, hour, samples, {names})
SELECT card_id, %(hour)s, count(*), {sums}
  FROM telemetry_history
 WHERE at >= %(hour)s AND at < %(hour)s + interval '1 hour'
 GROUP BY card_id
    ON CONFLICT (card_id, hour) DO UPDATE
   SET samples = EXCLUDED.samples, {taken}
""".format(
    names=", ".join(_SUMS),
    sums=", ".join(_SUMS.values()),
    taken=", ".join(f"{name} = EXCLUDED.{name}" for name in _SUMS),
)


@transaction.atomic
def _aggregate_hour(hour: datetime, *, at: datetime) -> None:
    # Late metrics are visible by now, or wait for this transaction and reopen the hour afterwards.
    lock_in_transaction(AdvisoryLock.SUM_HOUR, _hours_since_epoch(hour))
    SummedHour.objects.update_or_create(hour=hour, defaults={"summed_at": at})
    execute(_SUM_HOUR, {"hour": hour})


#: One column for each, in this order.
METRICS: tuple[Metric, ...] = tuple(Metric)


@dataclass(frozen=True, slots=True, kw_only=True)
class CardMetricRow:
    """Validated metrics of one card at one time."""

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
    INSERT INTO telemetry_history (card_id, at, {_NAMES})
    SELECT card_id, at, {_NAMES} FROM given
        ON CONFLICT DO NOTHING
"""  # noqa: S608 - made of names of columns alone
_WRITE_BEHIND = f"WITH given AS ({_GIVEN}) {_KEEP}"
#: Every writer locks the rows in this order.
_WRITE = f"""
WITH given AS ({_GIVEN}), kept AS ({_KEEP})
INSERT INTO telemetry_cardfigures AS newest
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
class CardMetricColumns:
    """The same of many cards: no card twice."""

    cards: Sequence[int]
    at: Sequence[datetime]
    serials: Sequence[str]
    #: Numbers of each card in its order; NaN where it was not measured, and no column where nothing at all was.
    values: Mapping[Metric, Numbers]


NOTHING = CardMetricColumns(cards=(), at=(), serials=(), values={})


def metric_columns_of_rows(rows: Sequence[CardMetricRow]) -> CardMetricColumns:
    grid = np.array([row.values for row in rows], dtype=np.float64).T
    return CardMetricColumns(
        cards=[row.card for row in rows],
        at=[row.at for row in rows],
        serials=[row.serial for row in rows],
        values=dict(zip(METRICS, grid, strict=True)) if rows else {},
    )


def concatenate_metric_columns(parts: Sequence[CardMetricColumns]) -> CardMetricColumns:
    """One below the other."""
    parts = [part for part in parts if part.cards] or [NOTHING]
    if len(parts) == 1:
        return parts[0]
    return CardMetricColumns(
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


def metrics_write(
    *, columns: CardMetricColumns, source: int, received_at: datetime, behind: bool = False
) -> frozenset[int]:
    """Write metrics: all of them to the history, and the latest ones to their card. Return the cards of the
    latter.

    Metrics that are ``behind`` go to the history only, as newer ones were written before. Repeated metrics
    change nothing.
    """
    if not columns.cards:
        return frozenset()
    # Most of a batch was measured at the same moment.
    instants = {at: _sql_timestamp(at) for at in set(columns.at)}
    parameters: list[Any] = [
        _to_sql_array(map(str, columns.cards)),
        _to_sql_array(map(instants.__getitem__, columns.at)),
        _serials_array(columns.serials),
        *(_numbers_array(columns.values.get(metric)) for metric in METRICS),
    ]
    write = (
        _write_older_metrics if behind else partial(_write_metrics, newest=[source, received_at])
    )
    try:
        newest = write(parameters)
    except IntegrityError as error:
        if not isinstance(error.__cause__, CheckViolation):
            raise
        # There is no partition for one of those days yet.
        history_partitions_create(days={at.astimezone(UTC).date() for at in instants})
        newest = write(parameters)
    return newest


def _write_metrics(given: Sequence[Any], *, newest: Sequence[Any]) -> frozenset[int]:
    with transaction.atomic():
        return frozenset(card for (card,) in fetch_rows(_WRITE, [*given, *newest]))


def _write_older_metrics(given: Sequence[Any]) -> frozenset[int]:
    with transaction.atomic():
        execute(_WRITE_BEHIND, given)
    return frozenset()


def _to_sql_array(texts: Iterable[str]) -> str:
    return "{" + ",".join(texts) + "}"


def _serials_array(serials: Sequence[str]) -> str:
    # They are printable, so none contains the line break that separates them.
    lines = "\n".join(serials).replace("\\", r"\\").replace('"', r"\"")
    return '{"' + lines.replace("\n", '","') + '"}'


def _numbers_array(column: Numbers | None) -> str | None:
    # What is missing at the end of an array is null, and so is all of one that is not there.
    return (
        None if column is None else _to_sql_array(map(repr, column.tolist())).replace("nan", "NULL")
    )


def _sql_timestamp(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
