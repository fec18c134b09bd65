"""The history's days and hours: what is made ahead, summed up, and dropped.

::

    figures ──▶ monitoring_history, one partition a day ──sum up──▶ CardHour
                       └── dropped whole after NINEFOLD_HISTORY_DAYS    └── deleted after NINEFOLD_HOURS_DAYS

Nothing is ever deleted row by row from the history: dropping a day costs the same however much it holds.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, date, datetime, time, timedelta

from django.conf import settings
from django.db import connection, transaction
from psycopg import sql

from apps.monitoring.models import CardHour, SummedHour
from apps.monitoring.services.faults import faults_prune
from controlplane.persistence.locks import AdvisoryLock, lock_in_transaction

#: Days that are made ahead, so that a loop that stands still for a night loses nothing.
AHEAD = 2
_PREFIX = "monitoring_history_"
#: Hours that one turn sums up at most; the next one goes on.
_HOURS_A_TURN = 6
_HOUR = timedelta(hours=1)


@transaction.atomic
def days_prepare(*, days: Collection[date]) -> int:
    """Make the partitions of those days that have none; how many that were."""
    lock_in_transaction(AdvisoryLock.PARTITION_HISTORY)
    missing = sorted(set(days) - set(days_kept()))
    with connection.cursor() as cursor:
        for day in missing:
            # Made beside the table and then joined to it: that way nobody who reads or writes has to wait.
            name = sql.Identifier(f"{_PREFIX}{day:%Y%m%d}")
            cursor.execute(
                sql.SQL("CREATE TABLE {name} (LIKE monitoring_history INCLUDING ALL)")
                .format(name=name)
                .as_string(cursor.connection)
            )
            cursor.execute(
                sql.SQL(
                    "ALTER TABLE monitoring_history ATTACH PARTITION {name}"
                    " FOR VALUES FROM ({first}) TO ({end})"
                )
                .format(
                    name=name,
                    first=sql.Literal(f"{day} 00:00:00+00"),
                    end=sql.Literal(f"{day + timedelta(days=1)} 00:00:00+00"),
                )
                .as_string(cursor.connection)
            )
    return len(missing)


def days_kept() -> list[date]:
    """The days that have a partition, the oldest first."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT child.relname FROM pg_inherits JOIN pg_class AS child ON child.oid = inhrelid"
            " WHERE inhparent = 'monitoring_history'::regclass ORDER BY 1"
        )
        names = [row[0].removeprefix(_PREFIX) for row in cursor.fetchall()]
    return [datetime.strptime(name, "%Y%m%d").replace(tzinfo=UTC).date() for name in names]


def history_tidy(*, at: datetime) -> int:
    """One turn: make days ahead, sum up finished hours, drop what is too old, faults too; how many hours."""
    today = at.astimezone(UTC).date()
    days_prepare(days=[today + timedelta(days=ahead) for ahead in range(-1, AHEAD + 1)])
    summed = _sum_up(at=at)
    _drop_days(before=today - timedelta(days=settings.NINEFOLD_HISTORY_DAYS))
    oldest = at - timedelta(days=settings.NINEFOLD_HOURS_DAYS)
    CardHour.objects.filter(hour__lt=oldest).delete()
    SummedHour.objects.filter(hour__lt=oldest).delete()
    faults_prune(at=at)
    return summed


@transaction.atomic
def _drop_days(*, before: date) -> None:
    lock_in_transaction(AdvisoryLock.PARTITION_HISTORY)
    for day in days_kept():
        if day < before:
            with connection.cursor() as cursor:
                # Whoever reads is not held up by us waiting for somebody else: rather try again next time.
                cursor.execute("SET LOCAL lock_timeout = '2s'")
                cursor.execute(
                    sql.SQL("DROP TABLE {name}")
                    .format(name=sql.Identifier(f"{_PREFIX}{day:%Y%m%d}"))
                    .as_string(cursor.connection)
                )


def hours_keep(*, hours: Collection[datetime]) -> None:
    """Have nobody sum them up until the transaction ends; it waits for whoever does at that moment.

    Any number keep an hour at once: they wait for no other.
    """
    for hour in sorted(hours):
        lock_in_transaction(AdvisoryLock.SUM_HOUR, _key(hour), shared=True)


def hours_reopen(*, hours: Collection[datetime]) -> None:
    """Have hours summed up again into which figures came late; it keeps them (``hours_keep``)."""
    hours_keep(hours=hours)
    # What is open stays so while it is kept: its row is left alone, since all who write it wait for each other.
    open_already = SummedHour.objects.filter(hour__in=hours, summed_at=None)
    closed = set(hours).difference(open_already.values_list("hour", flat=True))
    SummedHour.objects.bulk_create(
        [SummedHour(hour=hour) for hour in sorted(closed)],
        update_conflicts=True,
        unique_fields=["hour"],
        update_fields=["summed_at"],
    )


def hour_of(at: datetime) -> datetime:
    """The beginning of the hour that an instant is in."""
    return at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def _key(hour: datetime) -> int:
    """The hour's number since 1970."""
    return int(hour.timestamp()) // 3600


def _sum_up(*, at: datetime) -> int:
    """Finished hours that were not summed up, the newest first: that is what people look at."""
    days = days_kept()
    if not days:
        return 0
    oldest = datetime.combine(days[0], time.min, tzinfo=UTC)
    done = set(SummedHour.objects.exclude(summed_at=None).values_list("hour", flat=True))
    hour, summed = hour_of(at) - _HOUR, 0
    while hour >= oldest and summed < _HOURS_A_TURN:
        if hour not in done:
            _sum_hour(hour, at=at)
            summed += 1
        hour -= _HOUR
    return summed


#: Column of the sum → how it is made of the history's.
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
INSERT INTO monitoring_cardhour (card_id, hour, samples, {names})
SELECT card_id, %(hour)s, count(*), {sums}
  FROM monitoring_history
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
def _sum_hour(hour: datetime, *, at: datetime) -> None:
    # Figures that come late are there by now, or wait for this transaction and then reopen the hour.
    lock_in_transaction(AdvisoryLock.SUM_HOUR, _key(hour))
    SummedHour.objects.update_or_create(hour=hour, defaults={"summed_at": at})
    with connection.cursor() as cursor:
        cursor.execute(_SUM_HOUR, {"hour": hour})
