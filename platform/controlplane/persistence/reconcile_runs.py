"""Reconcile runs of controllers, recorded for status pages and metrics.

Two short statements per run, on the clock of the database. A run must not fail because it could not be
recorded.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from celery import current_app
from django.db import Error
from django.db.models.functions import Now

from controlplane.persistence.models import ControllerState
from controlplane.persistence.transactions import execute

log = logging.getLogger(__name__)

RECENT_RUNS = 30
_LONGEST_ERROR = 2000


def controller_intervals() -> dict[str, timedelta]:
    """Return the beat interval of each controller, by the name of its task."""
    return {entry["task"]: entry["schedule"] for entry in current_app.conf.beat_schedule.values()}


def record_reconcile_start(name: str) -> None:
    """Record the start of a run. Database errors are logged only."""
    _write_run(
        """
        INSERT INTO persistence_loop_state AS state
               (name, started_at, failures, error, runs, failed_runs, seconds, recent)
        VALUES (%(name)s, clock_timestamp(), 0, '', 0, 0, 0, '{}')
        ON CONFLICT (name) DO UPDATE SET started_at = EXCLUDED.started_at
        """,
        {"name": name},
    )


def record_reconcile_end(
    name: str, *, seconds: float, error: str | None = None, handled: int | None = None
) -> None:
    """Record the end of a run; ``error`` is None if it succeeded. Database errors are logged only."""
    _write_run(
        """
        INSERT INTO persistence_loop_state AS state
               (name, ended_at, succeeded_at, failures, error, failed_at, handled,
                runs, failed_runs, seconds, recent)
        VALUES (%(name)s, clock_timestamp(),
                CASE WHEN %(good)s THEN clock_timestamp() END,
                CASE WHEN %(good)s THEN 0 ELSE 1 END, %(error)s,
                CASE WHEN NOT %(good)s THEN clock_timestamp() END, %(handled)s,
                1, CASE WHEN %(good)s THEN 0 ELSE 1 END, %(seconds)s, ARRAY[%(seconds)s])
        ON CONFLICT (name) DO UPDATE
           SET ended_at = EXCLUDED.ended_at,
               succeeded_at = coalesce(EXCLUDED.succeeded_at, state.succeeded_at),
               failures = CASE WHEN %(good)s THEN 0 ELSE state.failures + 1 END,
               error = CASE WHEN %(good)s THEN state.error ELSE EXCLUDED.error END,
               failed_at = coalesce(EXCLUDED.failed_at, state.failed_at),
               handled = CASE WHEN %(good)s THEN EXCLUDED.handled ELSE state.handled END,
               runs = state.runs + 1,
               failed_runs = state.failed_runs + EXCLUDED.failed_runs,
               seconds = state.seconds + EXCLUDED.seconds,
               recent = (EXCLUDED.recent || state.recent)[1:%(kept)s]
        """,
        {
            "name": name,
            "good": error is None,
            "error": (error or "")[:_LONGEST_ERROR],
            "handled": handled,
            "seconds": float(seconds),
            "kept": RECENT_RUNS,
        },
    )


def _write_run(statement: str, parameters: dict[str, str | float | bool | None]) -> None:
    try:
        execute(statement, parameters)
    except Error:
        # ``name`` is an attribute of every log record, which ``extra`` may not replace.
        detail = {"controller": parameters["name"]}
        log.warning("a reconcile run could not be recorded", exc_info=True, extra=detail)


def read_reconcile_runs(*, otherwise: datetime) -> tuple[datetime, dict[str, ControllerState]]:
    """Return the time of the database, and every controller that has run by name, in one query.

    :param otherwise: the time if there is none.
    """
    rows = list(ControllerState.objects.annotate(now=Now()))
    return rows[0].now if rows else otherwise, {row.name: row for row in rows}
