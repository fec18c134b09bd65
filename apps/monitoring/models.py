"""Tables of faults, decisions, isolations, health rules, alerts and maintenance rollouts.

Maintenance rollouts over nodes: ``controlplane.domain.health.maintenance_rollouts``. Alerts: rules, groups,
silences, receivers, routes and deliveries.
"""

from __future__ import annotations

from typing import TypeAlias

from django.contrib.postgres.fields import ArrayField
from django.db import models

from apps.accounts.models import User
from apps.fleet.models import Card, Cluster, Node
from apps.notifications.models import CallDelivery, Receiver
from controlplane.domain.alerts.chat_messages import ReceiverKind
from controlplane.domain.alerts.deliveries import DeliveryState
from controlplane.domain.alerts.notices import NoticeKind
from controlplane.domain.alerts.rules import AlertSeverity
from controlplane.domain.health.faults import FaultLevel, SignalOrigin
from controlplane.domain.health.isolations import IsolationState
from controlplane.domain.health.maintenance_rollouts import NodeState, RolloutState
from controlplane.domain.health.snapshots import DecisionPolicy, HealthAction
from controlplane.domain.rules.conditions import RuleState
from controlplane.persistence.models import LeasedModel, Transition, UidModel
from controlplane.persistence.reasons import ReasonField

ACTIONS = [(action.value, action.value.replace("_", " ")) for action in HealthAction]
#: Primary keys of a node and of its card, or of a node as a whole.
Place: TypeAlias = tuple[int, int | None]
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

    @property
    def place(self) -> Place:
        return (self.node_id, self.card_id)


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


class HealthPolicy(models.Model):
    """Guards and pauses of automatic decisions (``controlplane.domain.health.snapshots.DecisionPolicy``)."""

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

    @property
    def policy(self) -> DecisionPolicy:
        return DecisionPolicy.from_settings(self.settings)

    @property
    def changed_by_name(self) -> str:
        """Empty if unchanged."""
        return self.changed_by.username if self.changed_by else ""


class Rollout(UidModel):
    """What is done to each of some nodes, and how far it is."""

    STATES = [(state.value, state.value) for state in RolloutState]

    name = models.CharField(max_length=120)
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="rollouts")
    #: Labels of the selected nodes; ``name`` matches a node's name. Empty in rollouts of earlier versions.
    labels = models.JSONField(default=dict, blank=True)
    #: The label whose values are the failure domains; empty: the network's, the outermost first.
    domain_label = models.CharField(max_length=120, blank=True, default="")
    state = models.CharField(max_length=10, choices=STATES, default=RolloutState.RUNNING)
    #: Arguments of the command, run without a shell; empty: no command.
    argv = ArrayField(models.CharField(max_length=1000), default=list, blank=True)
    #: For clusters that run containers.
    image = models.CharField(max_length=300, blank=True)
    #: Timeout of the command in seconds.
    run_within = models.PositiveIntegerField(default=600)
    burn_in = models.BooleanField(default=True)
    #: Maximum number of nodes in progress.
    parallel = models.PositiveSmallIntegerField(default=1)
    #: Acts in its name; as long as they may.
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    ended_at = models.DateTimeField(null=True, blank=True)
    #: Why the rollout does not proceed; empty if it does.
    error = ReasonField()

    class Meta:
        ordering = ("-id",)


class RolloutNode(UidModel):
    """One node of a rollout."""

    STATES = [(state.value, state.value) for state in NodeState]

    rollout = models.ForeignKey(Rollout, on_delete=models.CASCADE, related_name="nodes")
    node = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="+")
    #: The failure domain that it is a part of: its leaf, its spine or whatever label was chosen.
    domain = models.CharField(max_length=120)
    state = models.CharField(max_length=10, choices=STATES, default=NodeState.WAITING)
    #: The isolation during the rollout.
    isolation = models.ForeignKey(Isolation, on_delete=models.SET_NULL, null=True, related_name="+")
    #: Number of burn-in runs of that isolation when this one was requested.
    burn_ins_before = models.PositiveIntegerField(default=0)
    #: The command was begun; its Launch is still on the cluster.
    launched_at = models.DateTimeField(null=True, blank=True)
    launch_there = models.BooleanField(default=False)
    exit_code = models.IntegerField(null=True, blank=True)
    #: The last lines of the command's output.
    log_tail = models.TextField(blank=True)
    #: Why it is where it is.
    reason = ReasonField()
    began_at = models.DateTimeField(null=True, blank=True)
    changed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        # As they are worked on.
        ordering = ("id",)
        constraints = (
            models.UniqueConstraint(fields=("rollout", "node"), name="rollout_node_once"),
        )

    def __str__(self) -> str:
        return f"{self.node} in {self.rollout}"

    @property
    def launch_name(self) -> str:
        return f"wave-{self.uid}"


SEVERITIES = [(severity.value, severity.value) for severity in AlertSeverity]


class AlertRule(UidModel):
    """When something is an alert (``controlplane.domain.alerts.rules.AlertRuleSpec``)."""

    name = models.SlugField(max_length=60, unique=True)
    title = models.CharField(max_length=120)
    severity = models.CharField(max_length=10, choices=SEVERITIES)
    enabled = models.BooleanField(default=True)
    #: ``AlertRuleSpec.as_json()``.
    document = models.JSONField()
    #: The product came with it; it can be switched off, not deleted.
    shipped = models.BooleanField(default=False)
    #: User name of who changed it last; empty while it is as it came.
    changed_by_name = models.CharField(max_length=150, blank=True)
    changed_at = models.DateTimeField()
    evaluated_at = models.DateTimeField(null=True, blank=True)
    #: Why the last evaluation failed; empty if it succeeded.
    error = ReasonField()

    class Meta:
        ordering = ("name",)


class AlertGroup(UidModel):
    """An episode: alerts of one rule that belong together, from the first that fires until none does.

    What it needs of its rule is kept, for the rule may be changed or deleted meanwhile.
    """

    rule = models.ForeignKey(AlertRule, on_delete=models.SET_NULL, null=True, related_name="groups")
    rule_name = models.CharField(max_length=60)
    title = models.CharField(max_length=120)
    severity = models.CharField(max_length=10, choices=SEVERITIES)
    #: The values of the labels that it is grouped by, and the same as text that is unique.
    labels = models.JSONField(default=dict, blank=True)
    key = models.CharField(max_length=64)
    began_at = models.DateTimeField()
    notified_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    #: How many alerts fire now, and at most did together; how many of those that fire are silenced.
    count = models.PositiveIntegerField(default=0)
    most = models.PositiveIntegerField(default=0)
    silenced = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ("-id",)
        constraints = (
            models.UniqueConstraint(
                fields=("rule", "key"),
                condition=models.Q(ended_at=None),
                name="alert_group_open_once",
            ),
        )
        indexes = (models.Index(fields=("ended_at", "-began_at"), name="alert_group_by_end"),)

    def __str__(self) -> str:
        return self.title


class Alert(UidModel):
    """One thing that a rule's condition holds for."""

    STATES = [(state.value, state.value) for state in RuleState]

    rule = models.ForeignKey(AlertRule, on_delete=models.SET_NULL, null=True, related_name="alerts")
    #: Null until it fires.
    group = models.ForeignKey(
        AlertGroup, on_delete=models.CASCADE, null=True, related_name="alerts"
    )
    state = models.CharField(max_length=10, choices=STATES, default=RuleState.PENDING)
    labels = models.JSONField(default=dict, blank=True)
    key = models.CharField(max_length=64)
    #: What was measured last.
    value = models.FloatField(null=True, blank=True)
    href = models.CharField(max_length=300, blank=True)
    began_at = models.DateTimeField()
    held_at = models.DateTimeField()
    fired_at = models.DateTimeField(null=True, blank=True)
    quiet_since = models.DateTimeField(null=True, blank=True)
    resolved_at = models.DateTimeField(null=True, blank=True)
    #: A notice about it was created.
    notified_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-id",)
        constraints = (
            models.UniqueConstraint(
                fields=("rule", "key"),
                condition=~models.Q(state=RuleState.RESOLVED),
                name="alert_stands_once",
            ),
        )
        indexes = (models.Index(fields=("group", "state", "id"), name="alert_by_group"),)

    def __str__(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self.labels.items() if value)


class AlertSilence(UidModel):
    """Suppresses notifications of matching alerts until its end or until a user expires it.

    Two silences that have not ended have different names: ``silence_create`` checks it under a lock, because no
    index can compare ``ends_at`` with the time.
    """

    name = models.CharField(max_length=80)
    #: As ``parse_matcher`` reads them.
    matchers = models.JSONField()
    reason = models.CharField(max_length=300)
    began_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    created_by_name = models.CharField(max_length=150)
    #: Who expired it early; empty if nobody did.
    ended_by_name = models.CharField(max_length=150, blank=True)

    class Meta:
        ordering = ("-id",)
        indexes = (models.Index(fields=("ends_at",), name="alert_silence_by_end"),)

    def __str__(self) -> str:
        return self.name


class AlertReceiver(Receiver):
    """Where messages go."""

    KINDS = [(kind.value, kind.value) for kind in ReceiverKind]

    name = models.CharField(max_length=80, unique=True)
    kind = models.CharField(max_length=20, choices=KINDS)
    #: What it is called at, encrypted, for a chat's address is a secret; None for e-mail.
    url = models.BinaryField(null=True, blank=True)
    #: Secret that signs the requests, encrypted; None: unsigned.
    secret = models.BinaryField(null=True, blank=True)
    #: E-mail addresses.
    addresses = models.JSONField(default=list, blank=True)
    #: In which language; empty: the product's.
    language = models.CharField(max_length=10, blank=True)
    created_by_name = models.CharField(max_length=150, blank=True)

    class Meta:
        ordering = ("name",)


class AlertRoute(UidModel):
    """Which alerts go to which receivers; several routes may match the same alert."""

    name = models.CharField(max_length=80, unique=True)
    severity = models.CharField(max_length=10, choices=SEVERITIES, default=AlertSeverity.WARNING)
    matchers = models.JSONField(default=list, blank=True)
    receivers = models.ManyToManyField(AlertReceiver, related_name="routes")
    enabled = models.BooleanField(default=True)

    class Meta:
        ordering = ("name",)


class AlertNotice(UidModel):
    """A notification of a group; append-only. ``group`` is null for a test."""

    KINDS = [(kind.value, kind.value) for kind in NoticeKind]

    group = models.ForeignKey(
        AlertGroup, on_delete=models.CASCADE, null=True, related_name="notices"
    )
    #: From 1 in each episode.
    number = models.PositiveIntegerField(default=1)
    kind = models.CharField(max_length=10, choices=KINDS)
    #: The state at that time: number of alerts, labels and values.
    content = models.JSONField(default=dict)
    at = models.DateTimeField()

    class Meta:
        ordering = ("-id",)
        constraints = (
            models.UniqueConstraint(fields=("group", "number"), name="alert_notice_numbered"),
            # At most one firing and one resolved notice for a group, also with concurrent evaluations.
            models.UniqueConstraint(
                fields=("group", "kind"),
                condition=models.Q(kind__in=(NoticeKind.FIRING, NoticeKind.RESOLVED)),
                name="alert_notice_once",
            ),
        )

    def __str__(self) -> str:
        return f"{self.kind} {self.number}"


class AlertDelivery(CallDelivery):
    """A notice to be sent to a receiver, who recognises repetitions by the notice's uid."""

    receiver = models.ForeignKey(AlertReceiver, on_delete=models.CASCADE, related_name="deliveries")
    notice = models.ForeignKey(AlertNotice, on_delete=models.CASCADE, related_name="deliveries")
    #: Of the last try.
    status = models.PositiveSmallIntegerField(null=True, blank=True)
    error = ReasonField()

    class Meta(CallDelivery.Meta):
        verbose_name_plural = "alert deliveries"
        constraints = (
            models.UniqueConstraint(
                fields=("receiver", "notice"), name="alert_delivery_once_per_notice"
            ),
        )
        indexes = (
            models.Index(
                fields=("next_try_at",),
                name="alert_delivery_due",
                condition=models.Q(state=DeliveryState.WAITING),
            ),
        )

    def __str__(self) -> str:
        return f"{self.notice} to {self.receiver}"

    @property
    def receiver_pk(self) -> int:
        return self.receiver_id
