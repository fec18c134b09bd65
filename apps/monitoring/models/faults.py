"""Faults of cards and nodes, the decisions about them, isolations, health rules and the health policy."""

from __future__ import annotations

from django.db import models

from apps.accounts.models import User
from apps.fleet.models import Card, Node
from controlplane.domain.health.decisions import HealthAction
from controlplane.domain.health.faults import FaultLevel, SignalOrigin
from controlplane.domain.health.isolations import IsolationState
from controlplane.persistence.models import LeasedModel, Transition, UidModel
from controlplane.persistence.reasons import ReasonField

ACTIONS = [(action.value, action.value.replace("_", " ")) for action in HealthAction]
ORIGINS = [(origin.value, origin.value) for origin in SignalOrigin]


class Fault(UidModel):
    """A fault of a card, or of a node where ``card`` is null; open or ended.

    The same fault of the same origin is one row while it is open: it counts how often it was reported.
    """

    LEVELS = [(level.value, f"L{level.value}") for level in FaultLevel]

    node = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="faults")
    card = models.ForeignKey(Card, on_delete=models.CASCADE, null=True, related_name="faults")
    origin = models.CharField(max_length=20, choices=ORIGINS)
    code = models.CharField(max_length=120)
    vendor = models.CharField(max_length=40, blank=True)
    level = models.PositiveSmallIntegerField(choices=LEVELS)
    #: The text of its origin.
    message = ReasonField()
    #: First and last report by the time of the origin; when the first report arrived.
    began_at = models.DateTimeField()
    reported_at = models.DateTimeField()
    noticed_at = models.DateTimeField()
    count = models.PositiveIntegerField(default=1)
    #: Its origin reports its end, or it was not reported for long enough.
    ended_at = models.DateTimeField(null=True, blank=True)
    #: A user has acknowledged it with a note.
    acknowledged_at = models.DateTimeField(null=True, blank=True)
    acknowledged_by_name = models.CharField(max_length=150, blank=True)
    note = models.TextField(blank=True)

    class Meta:
        ordering = ("-id",)
        constraints = (
            models.UniqueConstraint(
                fields=("node", "card", "origin", "code"),
                condition=models.Q(ended_at=None),
                name="fault_stands_once",
                nulls_distinct=False,
            ),
        )
        indexes = (
            models.Index(fields=("card", "-began_at"), name="fault_by_card"),
            models.Index(fields=("node", "-began_at"), name="fault_by_node"),
            models.Index(
                fields=("-level", "-id"), name="fault_standing", condition=models.Q(ended_at=None)
            ),
            models.Index(
                fields=("ended_at",),
                name="fault_by_end",
                condition=models.Q(ended_at__isnull=False),
            ),
        )

    def __str__(self) -> str:
        return f"{self.code} of {self.card or self.node}"


class Decision(UidModel):
    """A decision about a card or node by a rule or a user, and its result. Append-only."""

    class Outcome(models.TextChoices):
        DONE = "done"
        #: The guard suppressed it: a user has to decide.
        HELD_BACK = "held_back"
        #: Another system manages that node; it is only observed.
        FOLLOWED = "followed"
        #: By the time it was applied there was no more need.
        OVERTAKEN = "overtaken"

    node = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="decisions")
    card = models.ForeignKey(Card, on_delete=models.CASCADE, null=True, related_name="decisions")
    fault = models.ForeignKey(Fault, on_delete=models.CASCADE, null=True, related_name="decisions")
    action = models.CharField(max_length=30, choices=ACTIONS)
    outcome = models.CharField(max_length=20, choices=Outcome.choices)
    #: Why, with its numbers.
    reason = ReasonField()
    #: User name; empty for a rule.
    actor_name = models.CharField(max_length=150, blank=True)
    at = models.DateTimeField()

    class Meta:
        ordering = ("-id",)
        indexes = (
            models.Index(fields=("at",), name="decision_by_time"),
            models.Index(fields=("card", "-at"), name="decision_by_card"),
        )

    def __str__(self) -> str:
        return f"{self.action} of {self.card or self.node}: {self.outcome}"


class Isolation(UidModel, LeasedModel):
    """An isolation of a card, or of a whole node where ``card`` is null, from begin to end."""

    STATES = [(state.value, state.value.replace("_", " ")) for state in IsolationState]

    node = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="isolations")
    card = models.ForeignKey(Card, on_delete=models.CASCADE, null=True, related_name="isolations")
    state = models.CharField(max_length=20, choices=STATES, default=IsolationState.DRAINING)
    fault = models.ForeignKey(Fault, on_delete=models.SET_NULL, null=True, related_name="+")
    reason = ReasonField()
    #: User name of the requester; empty for a rule.
    actor_name = models.CharField(max_length=150, blank=True)
    began_at = models.DateTimeField()
    #: No claim has held it since.
    drained_at = models.DateTimeField(null=True, blank=True)
    #: We closed the node to work without cards: only then do we open it again.
    cordoned_node = models.BooleanField(default=False)
    #: How many burn-ins it has begun, and what the last one found.
    burn_ins = models.PositiveIntegerField(default=0)
    evidence = models.JSONField(default=dict, blank=True)
    #: A user requests another burn-in run.
    test_asked_at = models.DateTimeField(null=True, blank=True)
    tested_at = models.DateTimeField(null=True, blank=True)
    #: The last burn-in passed, and nothing has gone wrong since.
    proved_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-id",)
        constraints = (
            models.UniqueConstraint(
                fields=("node", "card"),
                condition=models.Q(ended_at=None),
                name="isolation_stands_once",
                nulls_distinct=False,
            ),
        )
        indexes = (
            models.Index(fields=("began_at",), name="isolation_by_time"),
            models.Index(fields=("card", "-began_at"), name="isolation_by_card"),
        )

    def __str__(self) -> str:
        return f"isolation of {self.card or self.node}"


class IsolationTransition(Transition):
    isolation = models.ForeignKey(Isolation, on_delete=models.CASCADE, related_name="history")
    entity_field = "isolation"


class HealthRule(UidModel):
    """A condition on metrics or faults, and the severity of its fault (``controlplane.domain.health.rules``)."""

    name = models.SlugField(max_length=60, unique=True)
    title = models.CharField(max_length=120)
    enabled = models.BooleanField(default=True)
    #: As ``parse_health_condition`` reads it.
    condition = models.JSONField()
    level = models.PositiveSmallIntegerField(choices=Fault.LEVELS)
    changed_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    changed_at = models.DateTimeField()

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name


class HealthPolicy(models.Model):
    """The guards and pauses of automatic decisions; one row (``controlplane.domain.health.decisions.Policy``)."""

    #: Always 1.
    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    automatic = models.BooleanField(default=True)
    settings = models.JSONField(default=dict, blank=True)
    #: The default rules were created once: a deleted one is not created again.
    seeded_at = models.DateTimeField(null=True, blank=True)
    changed_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    changed_at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "health policies"
        constraints = (models.CheckConstraint(condition=models.Q(id=1), name="one_health_policy"),)

    def __str__(self) -> str:
        return "automatic" if self.automatic else "by people only"
