"""Send notifications: an event becomes rows, e-mail and calls once, in one transaction, however often it comes."""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import F, QuerySet

from apps.accounts.models import Team, User
from apps.notifications.models import (
    Event,
    Mail,
    Notification,
    NotificationPreference,
    WebhookDelivery,
)
from apps.notifications.selectors import notifications, webhooks
from apps.notifications.selectors.notifications import (
    DeliveryPreference,
    NotificationRecipient,
    notifications_of_user,
)
from controlplane.domain.alerts.deliveries import (
    DELIVERY,
    DeliveryEvent,
    DeliveryState,
)
from controlplane.domain.alerts.notifications import (
    COLLAPSED_WITHIN,
    NOTIFICATION_TYPES,
    NotificationKind,
    NotificationSubject,
    collapse_key,
)
from controlplane.outbox.messages import publish_message
from controlplane.persistence.advisory_locks import AdvisoryLock, lock_in_transaction
from controlplane.persistence.models import new_uid
from controlplane.persistence.reasons import with_reasons_as_json


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationEvent:
    """An event as its publisher describes it."""

    #: Chosen by the publisher; equal for a repeated message.
    uid: str
    kind: NotificationKind
    team: Team | None
    subject_uid: str
    subject_name: str
    at: datetime
    #: For kinds with several kinds of subjects; None: the one of the catalogue.
    subject_kind: NotificationSubject | None = None
    #: Creator of the subject.
    creator: User | None = None
    #: User name of the user who caused it, who is not notified.
    actor_name: str = ""
    #: ``reason``, and further parameters for rendering.
    payload: Mapping[str, Any] = field(default_factory=dict)


@transaction.atomic
def notification_send(happening: NotificationEvent) -> bool:
    """Store the event and notify its recipients; return False if that was done before."""
    kind, key = happening.kind, collapse_key(happening.kind, subject_uid=happening.subject_uid)
    # Two concurrent events of one subject must not create two notifications.
    lock_in_transaction(AdvisoryLock.NOTIFY_EVENT, zlib.crc32(key.encode()) - 2**31)
    event, created = Event.objects.get_or_create(
        uid=happening.uid,
        defaults={
            "kind": kind,
            "team": happening.team,
            "subject_kind": happening.subject_kind or NOTIFICATION_TYPES[kind].subject,
            "subject_uid": happening.subject_uid,
            "subject_name": happening.subject_name[:200],
            "payload": with_reasons_as_json(happening.payload),
            "at": happening.at,
        },
    )
    if not created:
        return False
    hearing = notifications.recipients_of(
        kind, team=happening.team, creator=happening.creator, actor_name=happening.actor_name
    )
    mails = [_notify_recipient(event, reader, key) for reader in hearing]
    called = _queue_webhook_calls(event)
    if any(mails) or called:
        publish_message("outbound.due", event_uid=event.uid)
    return True


def _notify_recipient(event: Event, reader: NotificationRecipient, key: str) -> bool:
    """Add the event to the notifications of the recipient; return whether it is sent by e-mail."""
    line = (
        Notification.objects.filter(
            recipient=reader.user, collapse_key=key, first_at__gt=event.at - COLLAPSED_WITHIN
        )
        .order_by("-id")
        .first()
    )
    if line is None:
        line = Notification.objects.create(
            recipient=reader.user,
            event=event,
            kind=event.kind,
            severity=NOTIFICATION_TYPES[NotificationKind(event.kind)].severity,
            collapse_key=key,
            first_at=event.at,
            at=event.at,
            on_page=reader.page,
        )
    else:
        _merge_event_into_notification(line, event, on_page=reader.page)
    if not reader.email:
        return False
    # Repeated events are sent again after the window.
    due = event.at if line.first_at == event.at else line.first_at + COLLAPSED_WITHIN
    _, created = Mail.objects.get_or_create(
        notification=line,
        state=DeliveryState.WAITING,
        defaults={"recipient": reader.user, "next_try_at": due},
    )
    return created


def _merge_event_into_notification(line: Notification, event: Event, *, on_page: bool) -> None:
    changes: dict[str, Any] = {"count": F("count") + 1, "read_at": None}
    # Messages may arrive out of order; the latest event counts.
    if event.at >= line.at:
        changes |= {
            "event": event,
            "kind": event.kind,
            "severity": NOTIFICATION_TYPES[NotificationKind(event.kind)].severity,
            "at": event.at,
        }
    Notification.objects.filter(pk=line.pk).update(on_page=line.on_page or on_page, **changes)


def _queue_webhook_calls(event: Event) -> int:
    """Queue the event for subscribed webhooks; return their number."""
    hearing = webhooks.webhooks_subscribed(NotificationKind(event.kind), team=event.team)
    rows = [
        WebhookDelivery(webhook=webhook, event=event, next_try_at=event.at) for webhook in hearing
    ]
    return len(WebhookDelivery.objects.bulk_create(rows))


EVENT_RETENTION = timedelta(days=90)


def notifications_mark_read(*, user: User, uids: Iterable[str] | None, at: datetime) -> int:
    """Mark those as read, or all of the user; return how many were unread."""
    unread = notifications_of_user(user).filter(read_at=None)
    if uids is not None:
        unread = unread.filter(uid__in=list(uids))
    return unread.update(read_at=at)


def notifications_mark_unread(*, user: User, read_at: datetime) -> int:
    """Undo: mark as unread what was marked as read at that instant; return the number."""
    return Notification.objects.filter(recipient=user, read_at=read_at).update(read_at=None)


@transaction.atomic
def delivery_preferences_set(*, user: User, preferences: Iterable[DeliveryPreference]) -> None:
    """Store the delivery preferences of each of those kinds."""
    for preference in preferences:
        NotificationPreference.objects.update_or_create(
            user=user,
            kind=preference.kind,
            defaults={
                "page": preference.page,
                "email": preference.email,
                "whole_team": preference.whole_team,
            },
        )


def notification_send_test(*, user: User, at: datetime) -> None:
    """Send a test notification by every channel."""
    notification_send(
        NotificationEvent(
            uid=new_uid(),
            kind=NotificationKind.TEST,
            team=None,
            # Each test is a line of its own.
            subject_uid=new_uid(),
            subject_name=user.username,
            at=at,
            creator=user,
            payload={"reason": "you asked for it; nothing has happened"},
        )
    )


def notification_events_prune(*, at: datetime) -> int:
    """Delete events past their retention with their notifications and deliveries; return their number."""
    _, deleted = Event.objects.filter(at__lt=at - EVENT_RETENTION).delete()
    return deleted.get(Event._meta.label, 0)


_WAITING = DeliveryState.WAITING


def emails_record_sent(*, mails: Collection[Mail], message_id: str, at: datetime) -> None:
    """Record that the mail server accepted one message with all of them."""
    state = DELIVERY.after(_WAITING, DeliveryEvent.ARRIVE)
    _lock_emails(mails).update(
        state=state, sent_at=at, message_id=message_id, error="", tries=F("tries") + 1
    )


@transaction.atomic
def emails_record_failed(
    *, mails: Collection[Mail], error: str, at: datetime, spread: float, final: bool = False
) -> None:
    """Record a failed attempt; they are retried later, unless ``final`` or after too many attempts."""
    for mail in _lock_emails(mails).select_for_update(no_key=True):
        mail.error = error
        mail.record_attempt(error=error, at=at, spread=spread, final=final)
        mail.save(update_fields=["tries", "error", "state", "next_try_at"])


def emails_postpone(*, mails: Collection[Mail], until: datetime) -> None:
    """Postpone: too many messages were sent to that user lately, so these are sent together later."""
    _lock_emails(mails).update(next_try_at=until)


def _lock_emails(mails: Collection[Mail]) -> QuerySet[Mail]:
    return Mail.objects.filter(pk__in=[mail.pk for mail in mails], state=_WAITING)
