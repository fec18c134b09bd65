"""The queue tree: queues, entitlements, priority classes and the history of changes."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import F, Q

from apps.accounts.models import Team, User
from controlplane.domain.quotas.queues import QUOTA_FIELDS, ChipQuota, QueueState
from controlplane.persistence.models import UidModel, VersionedModel


class Queue(UidModel, VersionedModel):
    """A queue of claims. Its limits apply to all queues below; only leaf queues accept claims."""

    STATES: ClassVar = [(state.value, state.value) for state in QueueState]

    name = models.SlugField(max_length=60, unique=True)
    parent = models.ForeignKey(
        "self", on_delete=models.PROTECT, null=True, blank=True, related_name="children"
    )
    #: None: every team may use it.
    team = models.ForeignKey(
        Team, on_delete=models.PROTECT, null=True, blank=True, related_name="queues"
    )
    state = models.CharField(
        max_length=10, choices=STATES, default=QueueState.OPEN, db_default=QueueState.OPEN
    )
    description = models.TextField(blank=True, db_default="")
    #: Share of idle cards relative to sibling queues.
    weight = models.FloatField(default=1.0, db_default=1.0)
    #: May use more than its guarantee while other queues leave theirs idle.
    borrows = models.BooleanField(default=True, db_default=True)
    #: Others may use its idle guarantee; never what is reserved.
    lends = models.BooleanField(default=True, db_default=True)
    #: May reclaim its guarantee from borrowers.
    reclaims = models.BooleanField(default=True, db_default=True)
    #: Its higher-priority claims may preempt its own lower-priority ones.
    preempts = models.BooleanField(default=True, db_default=True)
    #: Maximum running claims of one user in this queue and those below; None for no limit.
    max_running_per_user = models.PositiveIntegerField(null=True, blank=True)
    #: Retired queues are visible only in history and the ledger.
    retired_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("name",)
        constraints = (
            models.CheckConstraint(condition=Q(weight__gt=0), name="queue_weight_positive"),
        )


class Entitlement(VersionedModel):
    """Quota of a queue for one chip, or for all chips together."""

    queue = models.ForeignKey(Queue, on_delete=models.CASCADE, related_name="entitlements")
    #: Empty: all chips together.
    chip = models.CharField(max_length=60, blank=True)
    #: Cards that are never lent.
    reserved = models.PositiveIntegerField(default=0)
    #: Cards that are lent while idle and reclaimed on demand.
    guaranteed = models.PositiveIntegerField(default=0)
    #: Maximum cards that it and the queues below use at once; None for no limit.
    cap = models.PositiveIntegerField(null=True, blank=True)

    class Meta:
        ordering = ("queue", "chip")
        constraints = (
            models.UniqueConstraint(fields=("queue", "chip"), name="entitlement_once_per_chip"),
            models.CheckConstraint(
                condition=Q(reserved__lte=F("guaranteed")),
                name="entitlement_reserved_is_guaranteed",
            ),
            models.CheckConstraint(
                condition=Q(cap=None) | Q(guaranteed__lte=F("cap")),
                name="entitlement_guaranteed_within_cap",
            ),
        )

    def __str__(self) -> str:
        return f"{self.queue}: {self.guaranteed} × {self.chip or 'any chip'}"

    @property
    def quota(self) -> ChipQuota:
        return ChipQuota(**{name: getattr(self, name) for name in QUOTA_FIELDS})


class PriorityClass(UidModel):
    """A named priority value."""

    name = models.SlugField(max_length=40, unique=True)
    #: Larger goes first; values above 0 are for queue admins only.
    value = models.IntegerField(unique=True)
    description = models.TextField(blank=True)

    class Meta:
        ordering = ("-value",)
        verbose_name_plural = "priority classes"


class QueueChange(UidModel):
    """A saved change of the queue tree. Append-only; ``created_at`` is its time."""

    actor = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, blank=True)
    #: Who it was, for ever.
    actor_name = models.CharField(max_length=150)
    #: Kind of change: ``create``, ``edit``, ``move``, ``retire``, ``import``, ``revert``.
    action = models.CharField(max_length=20)
    #: The user's note.
    note = models.TextField(blank=True)
    #: The changed queues by uid, each as its document; null if absent.
    before = models.JSONField()
    after = models.JSONField()
    reverts = models.ForeignKey(
        "self", on_delete=models.PROTECT, null=True, blank=True, related_name="reverted_by"
    )

    class Meta:
        ordering = ("-id",)

    def __str__(self) -> str:
        return f"{self.action} by {self.actor_name}"
