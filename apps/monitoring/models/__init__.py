"""The tables of news, telemetry, faults and what was decided about them."""

from __future__ import annotations

from apps.monitoring.models.faults import (
    Decision,
    Fault,
    HealthPolicy,
    HealthRule,
    Isolation,
    IsolationTransition,
)
from apps.monitoring.models.news import (
    DELIVERY_STATES,
    KINDS,
    Event,
    Mail,
    Notification,
    NotificationPreference,
    Webhook,
    WebhookDelivery,
    WebhookTry,
)
from apps.monitoring.models.telemetry import CardFigures, NodeToken, Source

__all__ = (
    "DELIVERY_STATES",
    "KINDS",
    "CardFigures",
    "Decision",
    "Event",
    "Fault",
    "HealthPolicy",
    "HealthRule",
    "Isolation",
    "IsolationTransition",
    "Mail",
    "NodeToken",
    "Notification",
    "NotificationPreference",
    "Source",
    "Webhook",
    "WebhookDelivery",
    "WebhookTry",
)
