"""What people were told of all this, and a webhook that works beside one that does not."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from apps.notifications.models import Notification, Webhook, WebhookDelivery
from apps.notifications.services import webhooks
from apps.notifications.services.notifications import notifications_mark_read
from apps.notifications.services.webhooks import DeliveryOutcome
from config import tasks
from controlplane.domain.alerts.notifications import NotificationKind
from controlplane.outbox.models import OutboxMessage
from controlplane.persistence.encryption import encrypt
from tests.e2e.demo.clock import NOW
from tests.e2e.demo.reasons import sample_reason
from tests.e2e.demo.users import Users

TOPICS = (
    "job.ended",
    "deployment.ready",
    "deployment.degraded",
    "model.imported",
    "model.refused",
)
KINDS = [
    NotificationKind.JOB_FAILED,
    NotificationKind.DEPLOYMENT_DEGRADED,
    NotificationKind.MODEL_REFUSED,
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Monitoring:
    working: Webhook
    failing: Webhook
    notification: Notification


def monitoring(users: Users) -> Monitoring:
    working = _webhook(users, "chat of the team", "https://chat.example.com/hooks/maps")
    failing = _webhook(users, "ticket desk", "https://tickets.example.com/api/ninefold")
    for message in OutboxMessage.objects.filter(topic__in=TOPICS).order_by("id"):
        for task in tasks.TOPICS[message.topic]:
            task.run(**message.payload)
    for delivery in WebhookDelivery.objects.select_related("webhook", "event").order_by("id"):
        at = max(delivery.event.at, NOW - timedelta(hours=30))
        _delivered(delivery, at=at, fails=delivery.webhook == failing)
    notifications = Notification.objects.filter(recipient=users.ada)
    old = notifications.filter(at__lt=NOW - timedelta(days=1)).values_list("uid", flat=True)
    notifications_mark_read(user=users.ada, uids=list(old), at=NOW - timedelta(hours=20))
    return Monitoring(working=working, failing=failing, notification=notifications[0])


def _webhook(users: Users, name: str, url: str) -> Webhook:
    """Without a look at where it leads: the sample company's addresses lead nowhere."""
    return Webhook.objects.create(
        team=users.maps,
        created_by=users.wei,
        name=name,
        url=url,
        kinds=sorted(KINDS),
        secret=encrypt(b"nfw-sample"),
    )


def _delivered(delivery: WebhookDelivery, *, at: datetime, fails: bool) -> None:
    if fails:
        at -= timedelta(minutes=5)
        for number, minutes in enumerate((0, 1, 4)):
            tried = DeliveryOutcome(
                at=at + timedelta(minutes=minutes),
                seconds=0.21 + number,
                status=503,
                error=sample_reason("webhook.response.unexpected_status", status=503),
            )
            webhooks.webhook_delivery_record_outcome(delivery=delivery, outcome=tried, spread=0.5)
        return
    outcome = DeliveryOutcome(at=at, seconds=0.14, status=204)
    webhooks.webhook_delivery_record_outcome(delivery=delivery, outcome=outcome, spread=0.5)
