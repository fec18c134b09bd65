"""Problem details of the errors of monitoring."""

from __future__ import annotations

from apps.monitoring.services.alerts import AlertSettingsRefused
from apps.monitoring.services.health_rules import HealthPolicyRefused
from apps.monitoring.services.isolations import IsolationRefused
from apps.monitoring.services.maintenance_rollouts import MaintenanceRolloutRefused
from apps.monitoring.services.metric_ingestion import (
    MetricPushBusy,
    MetricPushOutdated,
    MetricPushRefused,
    NodeTokenMismatch,
)
from apps.telemetry.services.metric_sources import MetricSourceRefused
from controlplane.domain.health.rules import HealthRuleInvalid
from controlplane.domain.rules.conditions import RuleInvalid
from controlplane.web.problem_details import register_problem

register_problem(AlertSettingsRefused, code="alert-refused")
register_problem(RuleInvalid, code="rule-invalid")
register_problem(HealthRuleInvalid, code="health-rule-refused")
register_problem(HealthPolicyRefused, code="health-policy-refused")
register_problem(IsolationRefused, code="isolation-refused")
register_problem(MaintenanceRolloutRefused, code="rollout-refused")
register_problem(MetricSourceRefused, code="source-refused")
register_problem(MetricPushRefused, code="push-refused", status=400)
register_problem(MetricPushOutdated, code="push-outdated", status=400)
register_problem(MetricPushBusy, code="push-busy", status=503, headers={"Retry-After": "2"})
register_problem(NodeTokenMismatch, code="another-node", status=403)
