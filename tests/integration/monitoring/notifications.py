"""News as the other apps publish it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from apps.accounts.models import Team, User
from apps.notifications.services.notifications import NotificationEvent, notification_send
from config import tasks
from controlplane.domain.alerts.notifications import NotificationKind
from controlplane.outbox.models import OutboxMessage
from controlplane.persistence.models import new_uid


def notify(
    kind: NotificationKind,
    *,
    team: Team,
    creator: User,
    at: datetime,
    subject: str = "a" * 32,
    name: str = "teach addresses",
    reason: str = "",
    uid: str = "",
) -> bool:
    return notification_send(
        NotificationEvent(
            uid=uid or new_uid(),
            kind=kind,
            team=team,
            subject_uid=subject,
            subject_name=name,
            at=at,
            creator=creator,
            payload={"reason": reason},
        )
    )


def deliver_messages(*topics: str) -> list[Mapping[str, Any]]:
    """Hand what was published on those topics to their listeners, twice, as a broker may."""
    payloads = []
    for message in OutboxMessage.objects.filter(topic__in=topics).order_by("id"):
        for task in tasks.TOPICS[message.topic]:
            task.run(**message.payload)
            task.run(**message.payload)
        payloads.append(message.payload)
    return payloads
