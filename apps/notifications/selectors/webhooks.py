"""Queries on webhooks and deliveries, and the body of a call."""

from __future__ import annotations

import json
from datetime import datetime

from django.conf import settings
from django.db.models import Prefetch, QuerySet

from apps.accounts.models import Team
from apps.accounts.selectors import RequestUser, teams_with_permission
from apps.notifications.models import Event, Webhook, WebhookDelivery, WebhookTry
from apps.notifications.selectors.notifications import event_subject_url
from controlplane.domain.alerts.deliveries import DeliveryState
from controlplane.domain.alerts.notifications import (
    NOTIFICATION_TYPES,
    NotificationAudience,
    NotificationKind,
    NotificationSubject,
)
from controlplane.domain.common.permissions import Permission

#: What a team can have sent. What is about webhooks would only fail with them.
SENDABLE = tuple(
    kind
    for kind, notification_type in NOTIFICATION_TYPES.items()
    if notification_type.subject not in (NotificationSubject.WEBHOOK, NotificationSubject.USER)
)


def webhooks_visible(user: RequestUser) -> QuerySet[Webhook]:
    """Those of teams that they may manage: an address can be a secret."""
    teams = teams_with_permission(user, Permission.MANAGE_TEAM)
    return Webhook.objects.filter(team__in=teams).select_related("team", "created_by")


def webhooks_subscribed(kind: NotificationKind, *, team: Team | None) -> QuerySet[Webhook]:
    """The active ones that want that kind: the team's; of all teams where it is about the fleet."""
    hearing = Webhook.objects.filter(active=True, kinds__contains=[kind.value])
    if team is None and NOTIFICATION_TYPES[kind].audience is NotificationAudience.OPERATORS:
        return hearing
    return hearing.filter(team=team)


def webhook_deliveries_visible(user: RequestUser) -> QuerySet[WebhookDelivery]:
    """To webhooks that they may see, the newest first, each with its ``history`` at hand."""
    tries = Prefetch("history", queryset=WebhookTry.objects.order_by("-id"))
    rows = WebhookDelivery.objects.filter(webhook__in=webhooks_visible(user).order_by())
    return rows.select_related("event", "webhook__team").prefetch_related(tries).order_by("-id")


def due_webhook_deliveries(*, at: datetime) -> list[WebhookDelivery]:
    """The most overdue delivery of each active webhook; webhooks whose last call is the longest ago come first."""
    rows = (
        WebhookDelivery.objects.filter(
            state=DeliveryState.WAITING, next_try_at__lte=at, webhook__active=True
        )
        .select_related("event__team", "webhook__team", "webhook__created_by")
        .order_by("webhook_id", "next_try_at", "id")
        .distinct("webhook_id")
    )
    return sorted(rows, key=lambda row: (row.webhook.tried_at or row.next_try_at, row.pk))


def delivery_body(event: Event) -> bytes:
    """JSON of an event as webhooks get it; the same for every try."""
    subject = {
        "kind": event.subject_kind,
        "uid": event.subject_uid,
        "name": event.subject_name,
    }
    content = {
        "id": event.uid,
        "kind": event.kind,
        "at": event.at.isoformat(),
        "team": event.team.slug if event.team else None,
        "subject": subject,
        "reason": event.reason,
        "link": f"{settings.NINEFOLD_PUBLIC_URL}{event_subject_url(event)}",
    }
    if evidence := event.payload.get("evidence"):
        content["evidence"] = evidence
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
