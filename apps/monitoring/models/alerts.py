"""Alerts: rules, groups, silences, receivers, routes and deliveries."""

from __future__ import annotations

from django.db import models

from controlplane.domain.alerts.chat_messages import ReceiverKind
from controlplane.domain.alerts.deliveries import DeliveryState
from controlplane.domain.alerts.notices import NoticeKind
from controlplane.domain.alerts.rules import AlertSeverity
from controlplane.domain.rules import RuleState
from controlplane.persistence.models import UidModel
from controlplane.persistence.reasons import ReasonField

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

    def __str__(self) -> str:
        return self.name


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
    """Suppresses notifications of matching alerts until its end or until a user expires it."""

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
        return ", ".join(self.matchers)


class AlertReceiver(UidModel):
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
    active = models.BooleanField(default=True)
    created_by_name = models.CharField(max_length=150, blank=True)
    #: Of the newest try: when, and what went wrong; empty where nothing did.
    tried_at = models.DateTimeField(null=True, blank=True)
    last_error = ReasonField()

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name


class AlertRoute(UidModel):
    """Which alerts go to which receivers; several routes may match the same alert."""

    name = models.CharField(max_length=80, unique=True)
    severity = models.CharField(max_length=10, choices=SEVERITIES, default=AlertSeverity.WARNING)
    matchers = models.JSONField(default=list, blank=True)
    receivers = models.ManyToManyField(AlertReceiver, related_name="routes")
    enabled = models.BooleanField(default=True)

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name


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


class AlertDelivery(UidModel):
    """A notice to be sent to a receiver, at least once; receivers recognise repetitions by the notice's uid."""

    STATES = [(state.value, state.value) for state in DeliveryState]

    receiver = models.ForeignKey(AlertReceiver, on_delete=models.CASCADE, related_name="deliveries")
    notice = models.ForeignKey(AlertNotice, on_delete=models.CASCADE, related_name="deliveries")
    state = models.CharField(max_length=20, choices=STATES, default=DeliveryState.WAITING)
    tries = models.PositiveIntegerField(default=0)
    next_try_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)
    #: Of the last try.
    status = models.PositiveSmallIntegerField(null=True, blank=True)
    error = ReasonField()

    class Meta:
        ordering = ("-id",)
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
