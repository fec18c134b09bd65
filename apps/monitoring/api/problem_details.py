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
from controlplane.domain.alerts.rules import RuleInvalid
from controlplane.domain.health.rules import HealthRuleRefused
from controlplane.web.problem_details import ProblemDetails, problem_translator


@problem_translator(AlertSettingsRefused)
def _alert_refused_problem(error: AlertSettingsRefused) -> ProblemDetails:
    errors = [{"field": error.field, "message": str(error)}]
    return ProblemDetails(status=422, code="alert-refused", detail=str(error), errors=errors)


@problem_translator(MaintenanceRolloutRefused)
def _rollout_refused_problem(error: MaintenanceRolloutRefused) -> ProblemDetails:
    errors = [{"field": error.field, "message": str(error)}]
    return ProblemDetails(status=422, code="rollout-refused", detail=str(error), errors=errors)


@problem_translator(RuleInvalid)
def _alert_rule_invalid_problem(error: RuleInvalid) -> ProblemDetails:
    errors = [{"field": one.field, "message": one.message} for one in error.findings]
    return ProblemDetails(status=422, code="rule-invalid", detail=str(error), errors=errors)


@problem_translator(MetricSourceRefused)
def _metric_source_refused_problem(error: MetricSourceRefused) -> ProblemDetails:
    errors = [{"field": error.field, "message": str(error)}]
    return ProblemDetails(status=422, code="source-refused", detail=str(error), errors=errors)


@problem_translator(MetricPushRefused)
def _metrics_push_refused_problem(error: MetricPushRefused) -> ProblemDetails:
    errors = [{"field": error.field, "message": str(error)}]
    return ProblemDetails(status=400, code="push-refused", detail=str(error), errors=errors)


@problem_translator(MetricPushOutdated)
def _metrics_push_outdated_problem(error: MetricPushOutdated) -> ProblemDetails:
    errors = [{"field": error.field, "message": str(error)}]
    return ProblemDetails(status=400, code="push-outdated", detail=str(error), errors=errors)


@problem_translator(MetricPushBusy)
def _metrics_push_busy_problem(error: MetricPushBusy) -> ProblemDetails:
    headers = {"Retry-After": "2"}
    return ProblemDetails(status=503, code="push-busy", detail=str(error), headers=headers)


@problem_translator(NodeTokenMismatch)
def _node_token_mismatch_problem(error: NodeTokenMismatch) -> ProblemDetails:
    return ProblemDetails(status=403, code="another-node", detail=str(error))


@problem_translator(IsolationRefused)
def _isolation_refused_problem(error: IsolationRefused) -> ProblemDetails:
    return ProblemDetails(status=422, code="isolation-refused", detail=str(error))


@problem_translator(HealthPolicyRefused)
def _health_policy_refused_problem(error: HealthPolicyRefused) -> ProblemDetails:
    errors = [{"field": each.field, "message": each.message} for each in error.findings]
    return ProblemDetails(
        status=422, code="health-policy-refused", detail=str(error), errors=errors
    )


@problem_translator(HealthRuleRefused)
def _health_rule_refused_problem(error: HealthRuleRefused) -> ProblemDetails:
    errors = [{"field": error.field, "message": str(error)}]
    return ProblemDetails(status=422, code="health-rule-refused", detail=str(error), errors=errors)
