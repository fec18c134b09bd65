"""What was looked at when forecasts were made, and what people asked about other futures."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from apps.accounts.models import Team, User
from apps.quotas.models.claims import Claim
from apps.quotas.models.queues import Queue
from controlplane.domain.scheduling.questions import WhatIfState
from controlplane.persistence.models import Entity


class ForecastRun(models.Model):
    """One look ahead for all that waited. The newest says how fresh the forecasts are, and what they cost."""

    #: The moment that it looked ahead from.
    at = models.DateTimeField()
    ended_at = models.DateTimeField()
    #: Claims that waited, and those of them that were looked at: the first of each queue.
    waiting = models.PositiveIntegerField()
    looked_at = models.PositiveIntegerField()
    #: How far it looked, in seconds.
    horizon = models.PositiveIntegerField()

    class Meta:
        ordering = ("-id",)

    def __str__(self) -> str:
        return f"{self.looked_at} of {self.waiting} at {self.at}"


class WhatIf(Entity):
    """A question about a future that nobody has made, and its answer."""

    STATES: ClassVar = [(state.value, state.value) for state in WhatIfState]

    state = models.CharField(max_length=10, choices=STATES, default=WhatIfState.ASKED)
    person = models.ForeignKey(User, on_delete=models.CASCADE, related_name="what_ifs")
    #: Whose members may read it; None: only administrators of the company.
    team = models.ForeignKey(Team, on_delete=models.CASCADE, null=True, blank=True)
    #: What it was asked about; one of both.
    claim = models.ForeignKey(
        Claim, on_delete=models.CASCADE, null=True, blank=True, related_name="what_ifs"
    )
    queue = models.ForeignKey(Queue, on_delete=models.CASCADE, related_name="what_ifs")
    #: As ``controlplane.domain.scheduling.questions`` writes them..
    changes = models.JSONField()
    #: ``apps.quotas.services.what_ifs.Answer``, as values; empty until then.
    answer = models.JSONField(default=dict, blank=True)
    #: Why there is none.
    refusal = models.TextField(blank=True)
    answered_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-id",)

    def __str__(self) -> str:
        return f"what if, of {self.queue}"
