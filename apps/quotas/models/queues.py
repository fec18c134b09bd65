"""The queue tree: who is owed which cards, and what was changed in it."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import F, Q

from apps.accounts.models import Team, User
from controlplane.domain.queues import QueueState
from controlplane.persistence.models import Entity


class Queue(Entity):
    """Where a team's claims wait. What it states holds for all queues below; only leaves take claims."""

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
    #: Share of what is idle, against the queues beside it.
    weight = models.FloatField(default=1.0, db_default=1.0)
    #: May hold more than its guarantee while others leave theirs idle.
    borrows = models.BooleanField(default=True, db_default=True)
    #: Others may use its idle guarantee; never what is reserved.
    lends = models.BooleanField(default=True, db_default=True)
    #: May take its guarantee back from borrowers.
    reclaims = models.BooleanField(default=True, db_default=True)
    #: Its urgent claims may take the place of its own less urgent ones.
    preempts = models.BooleanField(default=True, db_default=True)
    #: Most claims of one person that hold cards at once, in this queue and those below; None: no limit.
    running_per_person = models.PositiveIntegerField(null=True, blank=True)
    #: It is gone for everybody but the ledger.
    retired_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("name",)
        constraints = (
            models.CheckConstraint(condition=Q(weight__gt=0), name="queue_weight_positive"),
        )

    def __str__(self) -> str:
        return self.name


class Entitlement(models.Model):
    """What a queue states for one chip, or for all chips together."""

    queue = models.ForeignKey(Queue, on_delete=models.CASCADE, related_name="entitlements")
    #: Empty: all chips together.
    chip = models.CharField(max_length=60, blank=True)
    #: Cards that are never lent.
    reserved = models.PositiveIntegerField(default=0)
    #: Cards that are lent while idle and taken back on demand.
    guaranteed = models.PositiveIntegerField(default=0)
    #: Most cards that it and the queues below hold at once; None: no limit.
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


class PriorityClass(Entity):
    """A name for a priority, so that people choose words rather than numbers."""

    name = models.SlugField(max_length=40, unique=True)
    #: Larger goes first; above 0 only queue admins may ask for it.
    value = models.IntegerField(unique=True)
    description = models.TextField(blank=True)

    class Meta:
        ordering = ("-value",)
        verbose_name_plural = "priority classes"

    def __str__(self) -> str:
        return self.name


class QueueChange(Entity):
    """One change to the tree, as it was saved. Append-only; ``created_at`` is when."""

    actor = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, blank=True)
    #: Who it was, for ever.
    actor_name = models.CharField(max_length=150)
    #: In a word what was done: ``create``, ``edit``, ``move``, ``retire``, ``import``, ``revert``.
    act = models.CharField(max_length=20)
    #: Why, as the person said.
    note = models.TextField(blank=True)
    #: The touched queues by uid, each as its document; null where there was none.
    before = models.JSONField()
    after = models.JSONField()
    reverts = models.ForeignKey(
        "self", on_delete=models.PROTECT, null=True, blank=True, related_name="reverted_by"
    )

    class Meta:
        ordering = ("-id",)

    def __str__(self) -> str:
        return f"{self.act} by {self.actor_name}"
