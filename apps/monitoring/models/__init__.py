"""Tables of faults, decisions, isolations, health rules, alerts and maintenance rollouts."""

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
from apps.monitoring.models.maintenance_rollouts import Rollout, RolloutNode

__all__ = (
    "Alert",
    "AlertDelivery",
    "AlertGroup",
    "AlertNotice",
    "AlertReceiver",
    "AlertRoute",
    "AlertRule",
    "AlertSilence",
    "Decision",
    "Fault",
    "HealthPolicy",
    "HealthRule",
    "Isolation",
    "IsolationTransition",
    "Rollout",
    "RolloutNode",
)
