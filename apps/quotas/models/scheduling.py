"""Forecast runs, what-if requests and durations of scheduling cycles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import connection, models

from apps.accounts.models import Team, User
from apps.quotas.models.claims import Claim
from apps.quotas.models.queues import Queue
from controlplane.domain.scheduling.what_if import WhatIfState
from controlplane.persistence.models import UidModel

#: Upper bounds of the histograms of cycle durations, in seconds.
CYCLE_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class ForecastRun(models.Model):
    """A run of the forecaster over pending claims. The newest gives the age and the cost of the forecasts."""

    #: Start of the forecast horizon.
    at = models.DateTimeField()
    ended_at = models.DateTimeField()
    #: Pending claims, and those of them that were considered: the first of each queue.
    waiting = models.PositiveIntegerField()
    looked_at = models.PositiveIntegerField()
    #: Length of the horizon in seconds.
    horizon = models.PositiveIntegerField()

    class Meta:
        ordering = ("-id",)

    def __str__(self) -> str:
        return f"{self.looked_at} of {self.waiting} at {self.at}"


class WhatIf(UidModel):
    """A what-if request and its result."""

    STATES: ClassVar = [(state.value, state.value) for state in WhatIfState]

    state = models.CharField(max_length=10, choices=STATES, default=WhatIfState.ASKED)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="what_ifs")
    #: The team whose members may read it; None for company administrators only.
    team = models.ForeignKey(Team, on_delete=models.CASCADE, null=True, blank=True)
    #: The claim it is about, if any, and the queue.
    claim = models.ForeignKey(
        Claim, on_delete=models.CASCADE, null=True, blank=True, related_name="what_ifs"
    )
    queue = models.ForeignKey(Queue, on_delete=models.CASCADE, related_name="what_ifs")
    #: As ``controlplane.domain.scheduling.what_if`` writes them.
    changes = models.JSONField()
    #: ``apps.quotas.selectors.forecasts.WhatIfResult`` as JSON; empty until computed.
    answer = models.JSONField(default=dict, blank=True)
    #: Why the request was refused.
    refusal = models.TextField(blank=True)
    answered_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-id",)

    def __str__(self) -> str:
        return f"what if, of {self.queue}"


class CyclePhase(models.Model):
    """Histogram of the duration of one cycle phase over all cycles; any process may add to it."""

    #: ``load``, ``plan`` or ``commit``.
    name = models.CharField(max_length=20, primary_key=True)
    cycles = models.BigIntegerField(default=0)
    seconds = models.FloatField(default=0.0)
    #: How many cycles took at most as long as each bound of ``CYCLE_SECONDS``.
    within = ArrayField(models.BigIntegerField(), default=list)

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return f"{self.name} of {self.cycles} cycles"

    @classmethod
    def record_cycle(cls, *, seconds: Mapping[str, float]) -> None:
        """Add one cycle to the histogram of each of its phases; several processes may do so at once."""
        rows = [
            (name, spent, [int(spent <= bound) for bound in CYCLE_SECONDS])
            for name, spent in sorted(seconds.items())
        ]
        with connection.cursor() as cursor:
            cursor.executemany(_ADD_CYCLE, rows)


_ADD_CYCLE = """
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
