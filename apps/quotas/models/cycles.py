"""How long the steps of scheduling cycles take."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models


class CyclePhase(models.Model):
    """A histogram of one step of the cycle over all cycles, which any process may add to."""

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
