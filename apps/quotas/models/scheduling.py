"""Forecast runs, what-if requests, durations of scheduling cycles, and defragmentation plans.

A defragmentation plan is a set of relocations of running workloads that is proposed, approved and executed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import connection, models

from apps.accounts.models import Team, User
from apps.quotas.models.claims import Claim
from apps.quotas.models.queues import Queue
from controlplane.domain.scheduling.defragmentation_runs import (
    DefragmentationPurpose,
    DefragmentationState,
    RelocationState,
)
from controlplane.domain.scheduling.what_if import WhatIfState
from controlplane.persistence.models import Transition, UidModel
from controlplane.persistence.reasons import ReasonField

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
    #: ``apps.quotas.selectors.forecasts.WhatIfOutcome`` as JSON; empty until computed.
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

    @property
    def buckets(self) -> list[tuple[float, int]]:
        """Upper bound in seconds, and the number of cycles within it."""
        return list(zip(CYCLE_SECONDS, self.within, strict=False))

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


class Defragmentation(UidModel):
    """A defragmentation plan; its state machine is in ``controlplane.domain.scheduling.defragmentation_runs``."""

    PURPOSES: ClassVar = [(purpose.value, purpose.value) for purpose in DefragmentationPurpose]
    STATES: ClassVar = [(state.value, state.value) for state in DefragmentationState]

    purpose = models.CharField(max_length=20, choices=PURPOSES)
    state = models.CharField(max_length=20, choices=STATES, default=DefragmentationState.PROPOSED)
    #: Reason of the state.
    state_reason = ReasonField()
    #: The pending claim that gets the freed cards.
    claim = models.ForeignKey(
        Claim, on_delete=models.PROTECT, null=True, blank=True, related_name="defragmentations"
    )
    #: Chip of the freed cards; empty for any.
    chip = models.CharField(max_length=60, blank=True)
    #: Planned result, with numbers.
    reason = ReasonField()
    #: Idle nodes and fragmented cards: before, as planned, and as measured at the end.
    whole_before = models.PositiveIntegerField()
    whole_after = models.PositiveIntegerField()
    whole_found = models.PositiveIntegerField(null=True, blank=True)
    fragments_before = models.FloatField()
    fragments_after = models.FloatField()
    fragments_found = models.FloatField(null=True, blank=True)
    #: Card-seconds lost by the relocations, and the value of the freed cards in card-seconds.
    cost = models.FloatField()
    gain = models.FloatField()
    #: Uids of the freed cards, reserved until the plan ends: for the claim, or to keep nodes idle.
    room = models.JSONField(default=list, blank=True)
    #: ``NodeRelocationPreview`` by ``NodeRelocationPreview``: the affected nodes before and after.
    pictures = models.JSONField(default=list, blank=True)
    proposed_by = models.ForeignKey(
        User, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    #: Username at the time; outlives the account.
    proposed_by_name = models.CharField(max_length=150)
    approved_by_name = models.CharField(max_length=150, blank=True)
    #: End of the time in which it can be approved.
    expires_at = models.DateTimeField()
    approved_at = models.DateTimeField(null=True, blank=True)
    #: A user asked to stop after the current relocation.
    stop_asked_at = models.DateTimeField(null=True, blank=True)
    stop_asked_by = models.CharField(max_length=150, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "quotas_rearrangement"
        ordering = ("-id",)
        indexes = (
            models.Index(
                fields=("id",),
                name="rearrangement_to_do",
                condition=models.Q(
                    state__in=(
                        DefragmentationState.PROPOSED,
                        DefragmentationState.APPROVED,
                        DefragmentationState.UNDER_WAY,
                    )
                ),
            ),
        )

    def __str__(self) -> str:
        return f"defragmentation plan {self.uid[:8]}"


class DefragmentationTransition(Transition):
    entity = models.ForeignKey(
        Defragmentation, on_delete=models.CASCADE, related_name="transitions"
    )

    class Meta(Transition.Meta):
        abstract = False
        db_table = "quotas_rearrangementtransition"


class DefragmentationMove(models.Model):
    """The relocation of one claim, with all its replicas."""

    STATES: ClassVar = [(state.value, state.value) for state in RelocationState]

    defragmentation = models.ForeignKey(
        Defragmentation, on_delete=models.CASCADE, related_name="moves"
    )
    #: Order of execution, from 1.
    number = models.PositiveIntegerField()
    state = models.CharField(max_length=20, choices=STATES, default=RelocationState.PLANNED)
    claim = models.ForeignKey(Claim, on_delete=models.PROTECT, related_name="moves")
    #: The claim that resumed the workload.
    successor = models.ForeignKey(
        Claim, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    chip = models.CharField(max_length=60)
    #: ``[{"role", "index", "node", "cards"}]`` with uids of nodes and cards.
    source = models.JSONField()
    target = models.JSONField()
    #: Seconds of work to repeat, and card-seconds including the restart.
    lost = models.FloatField()
    cost = models.FloatField()
    begun_at = models.DateTimeField(null=True, blank=True)
    #: Deadline; the relocation is missed if it has not finished by then.
    until = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "quotas_rearrangementmove"
        ordering = ("defragmentation", "number")
        constraints = (
            models.UniqueConstraint(
                fields=("defragmentation", "number"), name="move_once_by_number"
            ),
        )

    def __str__(self) -> str:
        return f"move {self.number} of {self.defragmentation}"


class MoveTransition(Transition):
    entity = models.ForeignKey(
        DefragmentationMove, on_delete=models.CASCADE, related_name="transitions"
    )

    class Meta(Transition.Meta):
        abstract = False
