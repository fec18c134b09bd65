"""Moves of running work that are proposed, approved and carried out."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from apps.accounts.models import User
from apps.quotas.models.claims import Claim
from controlplane.domain.rearrangements import MoveState, Purpose, RearrangementState
from controlplane.persistence.models import Entity, Transition


class Rearrangement(Entity):
    """Moves that make room together; the automaton is in ``controlplane.domain.rearrangements``."""

    PURPOSES: ClassVar = [(purpose.value, purpose.value) for purpose in Purpose]
    STATES: ClassVar = [(state.value, state.value) for state in RearrangementState]

    purpose = models.CharField(max_length=20, choices=PURPOSES)
    state = models.CharField(max_length=20, choices=STATES, default=RearrangementState.PROPOSED)
    #: Why it is in that state, in words.
    state_reason = models.TextField(blank=True)
    #: The waiting claim that gets the room.
    claim = models.ForeignKey(
        Claim, on_delete=models.PROTECT, null=True, blank=True, related_name="rearrangements"
    )
    #: Of the room; empty: any.
    chip = models.CharField(max_length=60, blank=True)
    #: What comes of it, as it was planned, with numbers.
    reason = models.TextField()
    #: Nodes on which nothing runs, and cards that are fragments: before, as planned, and as it came out.
    whole_before = models.PositiveIntegerField()
    whole_after = models.PositiveIntegerField()
    whole_found = models.PositiveIntegerField(null=True, blank=True)
    fragments_before = models.FloatField()
    fragments_after = models.FloatField()
    fragments_found = models.FloatField(null=True, blank=True)
    #: Card-seconds that the moves throw away, and that the room is worth.
    cost = models.FloatField()
    gain = models.FloatField()
    #: Uids of the cards that are kept until it ends, for the claim or as they are.
    room = models.JSONField(default=list, blank=True)
    #: ``NodePicture`` by ``NodePicture``: the touched nodes before and after.
    pictures = models.JSONField(default=list, blank=True)
    proposed_by = models.ForeignKey(
        User, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    #: Who it was, for ever.
    proposed_by_name = models.CharField(max_length=150)
    approved_by_name = models.CharField(max_length=150, blank=True)
    #: Until when it can be approved.
    expires_at = models.DateTimeField()
    approved_at = models.DateTimeField(null=True, blank=True)
    #: Somebody wants it to end once the move that is in motion has landed.
    stop_asked_at = models.DateTimeField(null=True, blank=True)
    stop_asked_by = models.CharField(max_length=150, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-id",)
        indexes = (
            models.Index(
                fields=("id",),
                name="rearrangement_to_do",
                condition=models.Q(
                    state__in=(
                        RearrangementState.PROPOSED,
                        RearrangementState.APPROVED,
                        RearrangementState.UNDER_WAY,
                    )
                ),
            ),
        )

    def __str__(self) -> str:
        return f"rearrangement {self.uid[:8]}"


class RearrangementTransition(Transition):
    entity = models.ForeignKey(Rearrangement, on_delete=models.CASCADE, related_name="transitions")

    class Meta(Transition.Meta):
        abstract = False


class RearrangementMove(models.Model):
    """One claim that goes elsewhere, all of it."""

    STATES: ClassVar = [(state.value, state.value) for state in MoveState]

    rearrangement = models.ForeignKey(Rearrangement, on_delete=models.CASCADE, related_name="moves")
    #: From 1, in the order in which they have to be made.
    number = models.PositiveIntegerField()
    state = models.CharField(max_length=20, choices=STATES, default=MoveState.PLANNED)
    claim = models.ForeignKey(Claim, on_delete=models.PROTECT, related_name="moves")
    #: The claim that took its work up.
    successor = models.ForeignKey(
        Claim, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    chip = models.CharField(max_length=60)
    #: ``[{"role", "index", "node", "cards"}]`` with uids of nodes and cards.
    source = models.JSONField()
    target = models.JSONField()
    #: Seconds of work that are done again, and card-seconds with the restart.
    lost = models.FloatField()
    cost = models.FloatField()
    begun_at = models.DateTimeField(null=True, blank=True)
    #: It is missed if it has not landed by then.
    until = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("rearrangement", "number")
        constraints = (
            models.UniqueConstraint(fields=("rearrangement", "number"), name="move_once_by_number"),
        )

    def __str__(self) -> str:
        return f"move {self.number} of {self.rearrangement}"


class MoveTransition(Transition):
    entity = models.ForeignKey(
        RearrangementMove, on_delete=models.CASCADE, related_name="transitions"
    )

    class Meta(Transition.Meta):
        abstract = False
