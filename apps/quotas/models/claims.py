"""Claims, the cards that they hold, and when they will get some."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from apps.accounts.models import Team, User
from apps.fleet.models import Card, Node
from apps.quotas.models.queues import Queue
from controlplane.domain.claims import ClaimState, ReleaseReason
from controlplane.persistence.models import Entity, Transition

#: As the database has it for rows that an older release writes.
EMPTY = models.Value({}, models.JSONField())


class Claim(Entity):
    """What a workload asks of the scheduler; see ``controlplane.domain.claims``."""

    STATES: ClassVar = [(state.value, state.value) for state in ClaimState]
    REASONS: ClassVar = [(reason.value, reason.value) for reason in ReleaseReason]

    state = models.CharField(max_length=20, choices=STATES, default=ClaimState.PENDING)
    queue = models.ForeignKey(Queue, on_delete=models.PROTECT, related_name="claims")
    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="claims")
    #: What owns it: ``attempt`` or ``replica``, and its uid.
    owner_kind = models.CharField(max_length=20)
    owner_uid = models.CharField(max_length=32)
    #: What people know it as: ``job`` or ``deployment``, its uid and name. Many claims in a row may be for one.
    work_kind = models.CharField(max_length=20, blank=True, db_default="")
    work_uid = models.CharField(max_length=32, blank=True, db_default="")
    work_name = models.CharField(max_length=200, blank=True, db_default="")
    #: Who asked for it.
    person = models.ForeignKey(
        User,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="claims",
        db_index=False,
    )
    #: ``GangShape.as_json()``.
    shape = models.JSONField()
    #: Cards in all, so that lists need not open the shape.
    card_count = models.PositiveIntegerField()
    #: Acceptable chips, the preferred first.
    chips = models.JSONField()
    priority = models.IntegerField(default=0)
    #: How fast it runs on each chip against the first; absent means 1.
    speeds = models.JSONField(default=dict, blank=True, db_default=EMPTY)
    #: ``selector``, ``tolerations``, ``within``, ``near`` and ``equal_chips`` of ``ClaimView``.
    where = models.JSONField(default=dict, blank=True, db_default=EMPTY)
    #: Seconds that it is expected to run on the first chip, as its owner said.
    runtime = models.PositiveIntegerField(null=True, blank=True)
    #: Its owner can save, stop and go on later.
    preemptible = models.BooleanField(default=False, db_default=False)
    #: Since when it is in line: a claim that takes up revoked work keeps the place of the one before it.
    in_line_since = models.DateTimeField(null=True, blank=True)
    #: Why it waits, or why it got these cards; numbers beside it.
    explanation = models.TextField(blank=True)
    explanation_numbers = models.JSONField(default=dict, blank=True)
    #: The chip it was given.
    chip = models.CharField(max_length=60, blank=True)
    #: ``[{"role", "index", "node", "cards"}]``: replicas without cards have a place too.
    placement = models.JSONField(default=list, blank=True)
    admitted_at = models.DateTimeField(null=True, blank=True)
    #: Up to when what it holds is in the ledger.
    metered_until = models.DateTimeField(null=True, blank=True)
    #: The waiting claim for which it was told to stop.
    revoked_for = models.ForeignKey(
        "self",
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="beneficiary_of",
        db_index=False,
    )
    #: When a revoked claim's processes are killed.
    revoke_by = models.DateTimeField(null=True, blank=True)
    released_at = models.DateTimeField(null=True, blank=True)
    release_reason = models.CharField(max_length=20, choices=REASONS, blank=True)
    #: Told by the owner, for choosing victims with little to lose.
    checkpointed_at = models.DateTimeField(null=True, blank=True)
    progress = models.FloatField(default=0.0)

    class Meta:
        ordering = ("-id",)
        # Every state of every claim is an entry in each index: no more of them than somebody asks.
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
            models.Index(
                fields=("id",),
                name="claim_holding",
                condition=models.Q(state__in=(ClaimState.ADMITTED, ClaimState.REVOKING)),
            ),
            models.Index(fields=("work_uid", "-id"), name="claim_of_work"),
            models.Index(
                fields=("revoked_for",),
                name="claim_heirs",
                condition=models.Q(revoked_for__isnull=False),
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
        indexes = (models.Index(fields=("released_at",), name="allocation_released"),)

    def __str__(self) -> str:
        return f"{self.card} for {self.claim}"


class Nomination(models.Model):
    """A card that was freed for a claim; nobody else gets it until then."""

    card = models.OneToOneField(Card, on_delete=models.CASCADE, related_name="nomination")
    #: None until the work that it is for waits again.
    claim = models.ForeignKey(
        Claim, on_delete=models.CASCADE, null=True, blank=True, related_name="nominations"
    )
    #: The work whose next claim gets it; empty where ``claim`` is known.
    work_uid = models.CharField(max_length=32, blank=True)
    #: After that anybody may have it.
    until = models.DateTimeField()

    class Meta:
        ordering = ("id",)

    def __str__(self) -> str:
        return f"{self.card} is kept for {self.claim or self.work_uid}"


class ClaimForecast(models.Model):
    """When a claim that waits will probably start, as the last forecast had it."""

    claim = models.OneToOneField(Claim, on_delete=models.CASCADE, related_name="forecast")
    #: As expected; None if not within the horizon.
    starts_at = models.DateTimeField(null=True, blank=True)
    #: If work ends early, and late.
    earliest = models.DateTimeField(null=True, blank=True)
    latest = models.DateTimeField(null=True, blank=True)
    chip = models.CharField(max_length=60, blank=True)
    #: Uids of the nodes, and of the claims whose end it waits for.
    nodes = models.JSONField(default=list, blank=True)
    waits_for = models.JSONField(default=list, blank=True)
    reason = models.TextField()
    #: Among all that waited, in the order in which the scheduler takes them; from 1.
    place = models.PositiveIntegerField(null=True, blank=True)
    made_at = models.DateTimeField()

    class Meta:
        ordering = ("starts_at",)

    def __str__(self) -> str:
        return f"{self.claim}: {self.starts_at}"
