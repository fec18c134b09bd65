"""An event becomes lines, e-mail and calls: once, in one transaction, however often the news comes."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import F

from apps.accounts.models import Team, User
from apps.monitoring.models import Event, Mail, Notification, WebhookDelivery
from apps.monitoring.selectors import readers, webhooks
from apps.monitoring.selectors.readers import Reader
from controlplane.domain.deliveries import DeliveryState
from controlplane.domain.news import COLLAPSED_WITHIN, NEWS, NewsKind, Subject, collapse_key
from controlplane.outbox.messages import publish
from controlplane.persistence.locks import AdvisoryLock, lock_in_transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """What its publisher knows about an event."""

    #: Chosen by the publisher; the same when it is told again.
    uid: str
    kind: NewsKind
    team: Team | None
    subject_uid: str
    subject_name: str
    at: datetime
    #: Where one kind tells of several kinds of subjects; None: the one of its row in the catalogue.
    subject_kind: Subject | None = None
    #: Who made the subject.
    maker: User | None = None
    #: User name of whoever did it; they know it already.
    actor_name: str = ""
    #: ``reason``, and whatever a later reader may want to know.
    payload: Mapping[str, Any] = field(default_factory=dict)


@transaction.atomic
def event_tell(happening: Happening) -> bool:
    """Keep the event and tell everybody who wants to know; False if that was done before."""
    kind, key = happening.kind, collapse_key(happening.kind, subject_uid=happening.subject_uid)
    # Two events of one subject at once must not make two lines.
    lock_in_transaction(AdvisoryLock.NOTIFY_EVENT, zlib.crc32(key.encode()) - 2**31)
    event, created = Event.objects.get_or_create(
        uid=happening.uid,
        defaults={
            "kind": kind,
            "team": happening.team,
            "subject_kind": happening.subject_kind or NEWS[kind].subject,
            "subject_uid": happening.subject_uid,
            "subject_name": happening.subject_name[:200],
            "payload": dict(happening.payload),
            "at": happening.at,
        },
    )
    if not created:
        return False
    hearing = readers.readers_of(
        kind, team=happening.team, maker=happening.maker, actor_name=happening.actor_name
    )
    mails = [_notify(event, reader, key) for reader in hearing]
    called = _call(event)
    if any(mails) or called:
        publish("outbound.due", event_uid=event.uid)
    return True


def _notify(event: Event, reader: Reader, key: str) -> bool:
    """Add the event to the reader's lines; say whether that makes an e-mail."""
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
            severity=NEWS[NewsKind(event.kind)].severity,
            collapse_key=key,
            first_at=event.at,
            at=event.at,
            on_page=reader.page,
        )
    else:
        _collapse(line, event, on_page=reader.page)
    if not reader.email:
        return False
    # What keeps happening is told of once more, when the window has passed.
    due = event.at if line.first_at == event.at else line.first_at + COLLAPSED_WITHIN
    _, waits = Mail.objects.get_or_create(
        notification=line,
        state=DeliveryState.WAITING,
        defaults={"recipient": reader.user, "next_try_at": due},
    )
    return waits


def _collapse(line: Notification, event: Event, *, on_page: bool) -> None:
    changes: dict[str, Any] = {"count": F("count") + 1, "read_at": None}
    # News can overtake older news on its way here; the newest is what counts.
    if event.at >= line.at:
        changes |= {
            "event": event,
            "kind": event.kind,
            "severity": NEWS[NewsKind(event.kind)].severity,
            "at": event.at,
        }
    Notification.objects.filter(pk=line.pk).update(on_page=line.on_page or on_page, **changes)


def _call(event: Event) -> int:
    """Queue the event for the webhooks that hear it; say for how many."""
    hearing = webhooks.webhooks_hearing(NewsKind(event.kind), team=event.team)
    rows = [
        WebhookDelivery(webhook=webhook, event=event, next_try_at=event.at) for webhook in hearing
    ]
    return len(WebhookDelivery.objects.bulk_create(rows))
