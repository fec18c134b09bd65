"""Durations of scheduling cycles, for metrics."""

from __future__ import annotations

from collections.abc import Mapping

from django.db import connection

from apps.quotas.selectors.cycles import CYCLE_SECONDS

_ADD = """
    INSERT INTO quotas_cyclephase AS phase (name, cycles, seconds, within)
    VALUES (%s, 1, %s, %s)
    ON CONFLICT (name) DO UPDATE
       SET cycles = phase.cycles + 1,
           seconds = phase.seconds + EXCLUDED.seconds,
           within = ARRAY(
               SELECT coalesce(before, 0) + more
                 FROM unnest(phase.within, EXCLUDED.within)
                      WITH ORDINALITY AS bound(before, more, place)
                ORDER BY place
           )
"""


def cycle_durations_record(*, seconds: Mapping[str, float]) -> None:
    """Add one cycle to the histogram of each of its phases."""
    rows = [
        (name, spent, [int(spent <= bound) for bound in CYCLE_SECONDS])
        for name, spent in sorted(seconds.items())
    ]
    with connection.cursor() as cursor:
        cursor.executemany(_ADD, rows)
