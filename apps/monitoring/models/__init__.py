"""The tables of news, telemetry, faults and what was decided about them."""

from __future__ import annotations

from apps.monitoring.models.alerts import (
    Alert,
    AlertDelivery,
    AlertGroup,
    AlertNotice,
    AlertReceiver,
    AlertRoute,
    AlertRule,
    AlertSilence,
)
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
from apps.monitoring.models.rollouts import Rollout, RolloutNode
from apps.monitoring.models.telemetry import (
    CardFigures,
    CardHistory,
    CardHour,
    NodeToken,
    Source,
    SummedHour,
)

__all__ = (
    "DELIVERY_STATES",
    "KINDS",
    "Alert",
    "AlertDelivery",
    "AlertGroup",
    "AlertNotice",
    "AlertReceiver",
    "AlertRoute",
    "AlertRule",
    "AlertSilence",
    "CardFigures",
    "CardHistory",
    "CardHour",
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
    "Rollout",
    "RolloutNode",
    "Source",
    "SummedHour",
    "Webhook",
    "WebhookDelivery",
    "WebhookTry",
)
