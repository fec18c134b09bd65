"""Claims, their allocations, nominations and forecasts; the usage ledger by claim and by day, and card rates."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from apps.accounts.models import Team, User
from apps.fleet.models import Card, Node
from apps.quotas.models.queues import Queue
from controlplane.domain.quotas.claims import ClaimState, ReleaseReason
from controlplane.persistence.models import Transition, UidModel, VersionedModel
from controlplane.persistence.reasons import ReasonField

#: Database default, for rows that an older release writes.
EMPTY = models.Value({}, models.JSONField())


class Claim(UidModel, VersionedModel):
    """A workload's request to the scheduler; see ``controlplane.domain.quotas.claims``."""

    STATES: ClassVar = [(state.value, state.value) for state in ClaimState]
    REASONS: ClassVar = [(reason.value, reason.value) for reason in ReleaseReason]

    state = models.CharField(max_length=20, choices=STATES, default=ClaimState.PENDING)
    queue = models.ForeignKey(Queue, on_delete=models.PROTECT, related_name="claims")
    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="claims")
    #: Kind of the owner, ``attempt`` or ``replica``, and its uid.
    owner_kind = models.CharField(max_length=20)
    owner_uid = models.CharField(max_length=32)
    #: The workload: ``job`` or ``deployment``, its uid and name. A workload may have many claims over time.
    work_kind = models.CharField(max_length=20, blank=True, db_default="")
    work_uid = models.CharField(max_length=32, blank=True, db_default="")
    work_name = models.CharField(max_length=200, blank=True, db_default="")
    #: The user who submitted the workload.
    user = models.ForeignKey(
        User,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="claims",
        db_index=False,
    )
    #: ``GangShape.as_json()``.
    shape = models.JSONField()
    #: Total cards, so that lists need not parse the shape.
    card_count = models.PositiveIntegerField()
    #: Acceptable chips, the preferred first.
    chips = models.JSONField()
    priority = models.IntegerField(default=0)
    #: Speed on each chip relative to the first; absent means 1.
    speeds = models.JSONField(default=dict, blank=True, db_default=EMPTY)
    #: ``selector``, ``within``, ``near`` and ``equal_chips`` of ``ClaimSnapshot``.
    where = models.JSONField(default=dict, blank=True, db_default=EMPTY)
    #: Expected runtime on the first chip in seconds, as declared by the owner.
    runtime = models.PositiveIntegerField(null=True, blank=True)
    #: The owner can checkpoint, stop and resume later.
    preemptible = models.BooleanField(default=False, db_default=False)
    #: Queueing time for ordering: a claim that resumes an evicted workload keeps the time of its predecessor.
    in_line_since = models.DateTimeField(null=True, blank=True)
    #: Reason why it is pending, or why it was placed there, and its numbers.
    explanation = ReasonField()
    explanation_numbers = models.JSONField(default=dict, blank=True)
    #: The allocated chip.
    chip = models.CharField(max_length=60, blank=True)
    #: ``[{"role", "index", "node", "cards"}]``: replicas without cards are included.
    placement = models.JSONField(default=list, blank=True)
    admitted_at = models.DateTimeField(null=True, blank=True)
    #: The ledger contains its usage up to this instant.
    metered_until = models.DateTimeField(null=True, blank=True)
    #: The pending claim that it was evicted for.
    revoked_for = models.ForeignKey(
        "self",
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="beneficiary_of",
        db_index=False,
    )
    #: End of the grace period of an eviction.
    revoke_by = models.DateTimeField(null=True, blank=True)
    released_at = models.DateTimeField(null=True, blank=True)
    release_reason = models.CharField(max_length=20, choices=REASONS, blank=True)
    #: Reported by the owner; used to choose victims that lose little.
    checkpointed_at = models.DateTimeField(null=True, blank=True)
    progress = models.FloatField(default=0.0)

    class Meta:
        ordering = ("-id",)
        # Every state change writes to each index, so there are only indexes that queries need.
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
    """A card that is allocated to a claim. The unique index guarantees that no card is allocated twice."""

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
    """A card that is reserved for a claim until ``until``."""

    card = models.OneToOneField(Card, on_delete=models.CASCADE, related_name="nomination")
    #: None until the workload has a new pending claim.
    claim = models.ForeignKey(
        Claim, on_delete=models.CASCADE, null=True, blank=True, related_name="nominations"
    )
    #: The workload whose next claim gets it; empty if ``claim`` is set.
    work_uid = models.CharField(max_length=32, blank=True)
    #: End of the reservation.
    until = models.DateTimeField()

    class Meta:
        ordering = ("id",)

    def __str__(self) -> str:
        return f"{self.card} is kept for {self.claim or self.work_uid}"


class ClaimForecast(models.Model):
    """Predicted start of a pending claim, from the last forecast."""

    claim = models.OneToOneField(Claim, on_delete=models.CASCADE, related_name="forecast")
    #: Expected start; None if not within the horizon.
    starts_at = models.DateTimeField(null=True, blank=True)
    #: Start if running workloads end early, and late.
    earliest = models.DateTimeField(null=True, blank=True)
    latest = models.DateTimeField(null=True, blank=True)
    chip = models.CharField(max_length=60, blank=True)
    #: Uids of the nodes, and of the claims that have to end first.
    nodes = models.JSONField(default=list, blank=True)
    blocked_by = models.JSONField(default=list, blank=True)
    reason = ReasonField()
    #: Position among all pending claims in scheduling order, from 1.
    place = models.PositiveIntegerField(null=True, blank=True)
    created_at = models.DateTimeField()

    class Meta:
        ordering = ("starts_at",)

    def __str__(self) -> str:
        return f"{self.claim}: {self.starts_at}"


class UsageRecord(models.Model):
    """Cards of one chip that a claim used for an interval within one day (UTC). Append-only.

    The records of a claim are contiguous and do not overlap, from its admission on; together with its usage
    since ``Claim.metered_until`` they equal its allocations.
    """

    claim = models.ForeignKey(Claim, on_delete=models.PROTECT, related_name="usage")
    queue = models.ForeignKey(Queue, on_delete=models.PROTECT, related_name="+")
    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="+")
    user = models.ForeignKey(
        User, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    chip = models.CharField(max_length=60)
    #: The workload; see ``Claim``.
    work_kind = models.CharField(max_length=20, blank=True)
    work_uid = models.CharField(max_length=32, blank=True)
    work_name = models.CharField(max_length=200, blank=True)
    cards = models.PositiveIntegerField()
    since = models.DateTimeField()
    until = models.DateTimeField()
    #: ``cards × (until − since)``, in microseconds: exact.
    card_microseconds = models.BigIntegerField()
    #: Database clock: several machines write, and a roll-up selects records since the last one.
    recorded_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ("id",)
        constraints = (
            models.UniqueConstraint(fields=("claim", "chip", "since"), name="usage_record_once"),
            models.CheckConstraint(condition=Q(until__gt=F("since")), name="usage_record_lasts"),
        )
        indexes = (
            models.Index(fields=("since",), name="usage_record_since"),
            models.Index(fields=("work_uid",), name="usage_record_work"),
            models.Index(fields=("recorded_at",), name="usage_record_recorded"),
        )

    def __str__(self) -> str:
        return f"{self.cards} × {self.chip} for claim {self.claim_id}"


class UsageDay(models.Model):
    """Sums of the records of one day (UTC); can be recomputed at any time."""

    day = models.DateField()
    queue = models.ForeignKey(Queue, on_delete=models.PROTECT, related_name="+")
    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="+")
    user = models.ForeignKey(
        User, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    chip = models.CharField(max_length=60)
    work_kind = models.CharField(max_length=20, blank=True)
    card_microseconds = models.BigIntegerField()
    claims = models.PositiveIntegerField()
    rolled_at = models.DateTimeField(db_default=Now(), db_index=True)

    class Meta:
        ordering = ("day", "id")
        constraints = (
            models.UniqueConstraint(
                fields=("day", "queue", "team", "user", "chip", "work_kind"),
                nulls_distinct=False,
                name="usage_day_once",
            ),
        )

    def __str__(self) -> str:
        return f"{self.day} {self.queue} {self.chip}"


class CardRate(models.Model):
    """Price of a card-hour of a chip in reports."""

    chip = models.CharField(max_length=60, unique=True)
    per_hour = models.DecimalField(max_digits=12, decimal_places=4)

    class Meta:
        ordering = ("chip",)

    def __str__(self) -> str:
        return f"{self.chip}: {self.per_hour} an hour"
