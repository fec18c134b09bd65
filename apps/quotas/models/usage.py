"""The usage ledger: card usage by claim and by day, and card rates."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from apps.accounts.models import Team, User
from apps.quotas.models.claims import Claim
from apps.quotas.models.queues import Queue


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
