"""Queues, claims and the cards that claims hold."""

from __future__ import annotations

from django.db import models

from apps.accounts.models import Team
from apps.fleet.models import Card, Node
from controlplane.domain.claims import ClaimState, ReleaseReason
from controlplane.persistence.models import Entity, Transition


class Queue(Entity):
    """Where a team's claims wait. One default queue for now; a tree by ``parent`` later."""

    name = models.SlugField(max_length=60, unique=True)
    parent = models.ForeignKey(
        "self", on_delete=models.PROTECT, null=True, blank=True, related_name="children"
    )
    #: None: every team may use it.
    team = models.ForeignKey(
        Team, on_delete=models.PROTECT, null=True, blank=True, related_name="queues"
    )
    #: Most cards held at once, by chip; a chip that is absent has no limit.
    caps = models.JSONField(default=dict, blank=True)
    open = models.BooleanField(default=True)

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name


class Claim(Entity):
    """What a workload asks of the scheduler; see ``controlplane.domain.claims``."""

    STATES = [(state.value, state.value) for state in ClaimState]
    REASONS = [(reason.value, reason.value) for reason in ReleaseReason]

    state = models.CharField(max_length=20, choices=STATES, default=ClaimState.PENDING)
    queue = models.ForeignKey(Queue, on_delete=models.PROTECT, related_name="claims")
    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="claims")
    #: What owns it: ``attempt`` or ``replica``, and its uid.
    owner_kind = models.CharField(max_length=20)
    owner_uid = models.CharField(max_length=32)
    #: ``GangShape.as_json()``.
    shape = models.JSONField()
    #: Cards in all, so that lists need not open the shape.
    card_count = models.PositiveIntegerField()
    #: Acceptable chips, the preferred first.
    chips = models.JSONField()
    priority = models.IntegerField(default=0)
    #: Why it waits, or why it got these cards; numbers beside it.
    explanation = models.TextField(blank=True)
    explanation_numbers = models.JSONField(default=dict, blank=True)
    #: The chip it was given.
    chip = models.CharField(max_length=60, blank=True)
    #: ``[{"role", "index", "node", "cards"}]``: replicas without cards have a place too.
    placement = models.JSONField(default=list, blank=True)
    admitted_at = models.DateTimeField(null=True, blank=True)
    #: When a revoked claim's processes are killed.
    revoke_by = models.DateTimeField(null=True, blank=True)
    released_at = models.DateTimeField(null=True, blank=True)
    release_reason = models.CharField(max_length=20, choices=REASONS, blank=True)
    #: Told by the owner, for choosing victims with little to lose.
    checkpointed_at = models.DateTimeField(null=True, blank=True)
    progress = models.FloatField(default=0.0)

    class Meta:
        ordering = ("-id",)
        constraints = (
            models.UniqueConstraint(
                fields=("owner_kind", "owner_uid"),
                condition=~models.Q(state=ClaimState.RELEASED),
                name="claim_once_per_owner",
            ),
        )
        indexes = (
            models.Index(
                fields=("-priority", "id"),
                name="claim_waiting",
                condition=models.Q(state=ClaimState.PENDING),
            ),
        )

    def __str__(self) -> str:
        return f"claim {self.uid[:8]} of {self.owner_kind} {self.owner_uid[:8]}"


class ClaimTransition(Transition):
    entity = models.ForeignKey(Claim, on_delete=models.CASCADE, related_name="transitions")

    class Meta(Transition.Meta):
        abstract = False


class Allocation(models.Model):
    """A card held by a claim. The unique index is the promise that no card is given twice."""

    claim = models.ForeignKey(Claim, on_delete=models.PROTECT, related_name="allocations")
    card = models.ForeignKey(Card, on_delete=models.PROTECT, related_name="allocations")
    node = models.ForeignKey(Node, on_delete=models.PROTECT, related_name="allocations")
    role = models.CharField(max_length=40)
    replica = models.PositiveIntegerField()
    allocated_at = models.DateTimeField()
    released_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("id",)
        constraints = (
            models.UniqueConstraint(
                fields=("card",),
                condition=models.Q(released_at=None),
                name="allocation_card_held_once",
            ),
        )

    def __str__(self) -> str:
        return f"{self.card} for {self.claim}"
