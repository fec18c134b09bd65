"""Defragmentation plans: relocations of running workloads that are proposed, approved and executed."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from apps.accounts.models import User
from apps.quotas.models.claims import Claim
from controlplane.domain.scheduling.defragmentation_runs import (
    DefragmentationPurpose,
    DefragmentationState,
    RelocationState,
)
from controlplane.persistence.models import Transition, UidModel
from controlplane.persistence.reasons import ReasonField


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
