"""Events, notifications, preferences, e-mail, and webhooks with their deliveries."""

from __future__ import annotations

from datetime import datetime

from django.db import models

from apps.accounts.models import Team, User
from controlplane.domain.alerts.deliveries import (
    DELIVERY,
    DeliveryEvent,
    DeliveryState,
    delivery_retry_pause,
)
from controlplane.domain.alerts.notifications import (
    NotificationKind,
    NotificationSeverity,
    NotificationSubject,
)
from controlplane.persistence.models import UidModel
from controlplane.persistence.reasons import ReasonField, reason_from_json

KINDS = [(kind.value, kind.value) for kind in NotificationKind]


class Event(UidModel):
    """An event. Append-only; its uid comes from the publisher, so that it is stored once.

    Texts are rendered from ``payload`` on reading, as reader and language are not known before. The name of the
    subject is stored, as the subject may be deleted by then.
    """

    SUBJECTS = [(subject.value, subject.value) for subject in NotificationSubject]

    kind = models.CharField(max_length=40, choices=KINDS)
    team = models.ForeignKey(Team, on_delete=models.CASCADE, null=True, related_name="+")
    subject_kind = models.CharField(max_length=20, choices=SUBJECTS)
    subject_uid = models.CharField(max_length=32)
    subject_name = models.CharField(max_length=200)
    payload = models.JSONField(default=dict, blank=True)
    at = models.DateTimeField()

    class Meta:
        ordering = ("-id",)
        indexes = (models.Index(fields=("subject_uid", "-id"), name="event_by_subject"),)

    def __str__(self) -> str:
        return f"{self.kind}: {self.subject_name}"

    @property
    def reason(self) -> str:
        """Why it happened; empty where there is no reason."""
        return reason_from_json(self.payload.get("reason"))


class Notification(UidModel):
    """A notification for one user. Events that follow closely on the same subject are merged into it."""

    SEVERITIES = [(severity.value, severity.value) for severity in NotificationSeverity]

    recipient = models.ForeignKey(User, on_delete=models.CASCADE, related_name="notifications")
    #: The latest of its events.
    event = models.ForeignKey(Event, on_delete=models.CASCADE, related_name="notifications")
    kind = models.CharField(max_length=40, choices=KINDS)
    severity = models.CharField(max_length=10, choices=SEVERITIES)
    collapse_key = models.CharField(max_length=80)
    #: Number of its events.
    count = models.PositiveIntegerField(default=1)
    first_at = models.DateTimeField()
    at = models.DateTimeField()
    #: Their reader wants it on pages; otherwise it is there for e-mail only.
    on_page = models.BooleanField(default=True)
    read_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-at", "-id")
        indexes = (
            models.Index(fields=("recipient", "-at", "-id"), name="notification_newest"),
            models.Index(
                fields=("recipient",),
                name="notification_unread",
                condition=models.Q(read_at=None, on_page=True),
            ),
            models.Index(fields=("recipient", "collapse_key"), name="notification_collapse"),
        )

    def __str__(self) -> str:
        return f"{self.kind} for {self.recipient}"


class NotificationPreference(models.Model):
    """Delivery preference of one user for one kind; without a row, the default of the kind applies."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    kind = models.CharField(max_length=40, choices=KINDS)
    page = models.BooleanField(default=True)
    email = models.BooleanField(default=False)
    #: All events of their teams, not only those of their own objects.
    whole_team = models.BooleanField(default=False)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("user", "kind"), name="preference_once_per_kind"),
        )

    def __str__(self) -> str:
        return f"{self.user}: {self.kind}"


class Receiver(UidModel):
    """A URL that receives messages by HTTP."""

    active = models.BooleanField(default=True)
    #: Of the newest attempt: when, and what went wrong; empty if nothing did.
    tried_at = models.DateTimeField(null=True, blank=True)
    last_error = ReasonField()

    class Meta:
        abstract = True

    @property
    def badge(self) -> str:
        """A state of the table of state badges."""
        if not self.active:
            return "paused"
        if self.tried_at is None:
            return "untried"
        return "failing" if self.last_error else "working"


class OutboundDelivery(UidModel):
    """A message on its way to one receiver, at least once."""

    STATES = [(state.value, state.value) for state in DeliveryState]

    state = models.CharField(max_length=20, choices=STATES, default=DeliveryState.WAITING)
    #: Attempts since it was created or queued again.
    tries = models.PositiveIntegerField(default=0)
    next_try_at = models.DateTimeField()

    class Meta:
        abstract = True
        ordering = ("-id",)

    def record_attempt(
        self, *, error: str, at: datetime, spread: float, final: bool = False
    ) -> DeliveryState:
        """Count an attempt that ended with that error, if any; return the new state.

        A failed one is repeated later, unless it is ``final`` or there were too many.

        :param spread: a random number from 0 to 1.
        """
        state = DeliveryState(self.state)
        self.tries += 1
        pause = None if final else delivery_retry_pause(tries=self.tries, spread=spread)
        if not error:
            state = DELIVERY.after(state, DeliveryEvent.ARRIVE)
        elif pause is None:
            state = DELIVERY.after(state, DeliveryEvent.GIVE_UP)
        else:
            self.next_try_at = at + pause
        self.state = state
        return state


class CallDelivery(OutboundDelivery):
    """A message that is sent by calling the URL of its receiver, or by an e-mail of its own."""

    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta(OutboundDelivery.Meta):
        abstract = True

    @property
    def receiver_pk(self) -> int:
        """Primary key of its receiver."""
        raise NotImplementedError

    def record_attempt(
        self, *, error: str, at: datetime, spread: float, final: bool = False
    ) -> DeliveryState:
        state = super().record_attempt(error=error, at=at, spread=spread, final=final)
        if state is not DeliveryState.WAITING:
            self.ended_at = at
        return state


class Mail(OutboundDelivery):
    """A notification's way to its reader by e-mail. Several may leave in one message."""

    notification = models.ForeignKey(Notification, on_delete=models.CASCADE, related_name="mails")
    recipient = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    #: Response of the mail server to the last attempt.
    error = ReasonField()
    sent_at = models.DateTimeField(null=True, blank=True)
    #: The same for all that left in one message.
    message_id = models.CharField(max_length=200, blank=True)

    class Meta(OutboundDelivery.Meta):
        constraints = (
            models.UniqueConstraint(
                fields=("notification",),
                condition=models.Q(state=DeliveryState.WAITING),
                name="mail_one_waiting",
            ),
        )
        indexes = (
            models.Index(
                fields=("next_try_at",),
                name="mail_due",
                condition=models.Q(state=DeliveryState.WAITING),
            ),
            models.Index(fields=("recipient", "-sent_at"), name="mail_by_recipient"),
        )

    def __str__(self) -> str:
        return f"{self.state} mail to {self.recipient}"


class Webhook(Receiver):
    """An address of a team's own that is called with each of its events of some kinds."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="webhooks")
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    name = models.CharField(max_length=80)
    url = models.CharField(max_length=2000)
    #: Codes of :class:`NotificationKind`.
    kinds = models.JSONField()
    #: Secret that signs requests; encrypted at rest.
    secret = models.BinaryField()
    #: Deliveries given up in a row.
    given_up = models.PositiveIntegerField(default=0)
    #: Why Ninefold disabled it; empty if a user did, or if it is enabled.
    error = ReasonField()
    #: Status of the response to the newest attempt, if there was one.
    last_status = models.PositiveSmallIntegerField(null=True, blank=True)

    class Meta:
        ordering = ("-id",)
        constraints = (
            models.UniqueConstraint(fields=("team", "name"), name="webhook_name_once_in_team"),
        )

    @property
    def badge(self) -> str:
        return "switched_off" if self.error and not self.active else super().badge


class WebhookDelivery(CallDelivery):
    """The delivery of one event to one webhook; receivers recognise repetitions by the id."""

    webhook = models.ForeignKey(Webhook, on_delete=models.CASCADE, related_name="deliveries")
    event = models.ForeignKey(Event, on_delete=models.CASCADE, related_name="+")

    class Meta(CallDelivery.Meta):
        constraints = (
            models.UniqueConstraint(fields=("webhook", "event"), name="delivery_once_per_event"),
        )
        indexes = (
            models.Index(
                fields=("next_try_at",),
                name="delivery_due",
                condition=models.Q(state=DeliveryState.WAITING),
            ),
        )
        verbose_name_plural = "webhook deliveries"

    def __str__(self) -> str:
        return f"{self.event} to {self.webhook}"

    @property
    def receiver_pk(self) -> int:
        return self.webhook_id


class WebhookTry(models.Model):
    """One call. Append-only."""

    delivery = models.ForeignKey(WebhookDelivery, on_delete=models.CASCADE, related_name="history")
    at = models.DateTimeField()
    #: Status of the response; null without a response.
    status = models.PositiveSmallIntegerField(null=True, blank=True)
    seconds = models.FloatField()
    #: Why it did not arrive.
    error = ReasonField()
    #: The first characters of the response.
    answer = models.TextField(blank=True)

    class Meta:
        ordering = ("id",)
        verbose_name_plural = "webhook tries"

    def __str__(self) -> str:
        return f"{self.status or 'no answer'} at {self.at:%Y-%m-%d %H:%M:%S}"
