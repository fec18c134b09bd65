"""Problem details of the errors of monitoring."""

from __future__ import annotations

from apps.monitoring.services.alerts import AlertRefused
from apps.monitoring.services.health_rules import PolicyRefused
from apps.monitoring.services.ingestion import (
    NodeTokenMismatch,
    PushBusy,
    PushOutdated,
    PushRefused,
)
from apps.monitoring.services.isolations import IsolationRefused
from apps.monitoring.services.maintenance_rollouts import RolloutRefused
from apps.telemetry.services.sources import SourceRefused
from controlplane.domain.alerts.rules import RuleInvalid
from controlplane.domain.health.rules import RuleRefused
from controlplane.web.problems import Problem, problem_translator


@problem_translator(AlertRefused)
def _alert_refused(error: AlertRefused) -> Problem:
    errors = [{"field": error.field, "message": str(error)}]
    return Problem(status=422, code="alert-refused", detail=str(error), errors=errors)


@problem_translator(RolloutRefused)
def _rollout_refused(error: RolloutRefused) -> Problem:
    errors = [{"field": error.field, "message": str(error)}]
    return Problem(status=422, code="rollout-refused", detail=str(error), errors=errors)


@problem_translator(RuleInvalid)
def _rule_invalid(error: RuleInvalid) -> Problem:
    errors = [{"field": one.field, "message": one.message} for one in error.findings]
    return Problem(status=422, code="rule-invalid", detail=str(error), errors=errors)


@problem_translator(SourceRefused)
def _source_refused(error: SourceRefused) -> Problem:
    errors = [{"field": error.field, "message": str(error)}]
    return Problem(status=422, code="source-refused", detail=str(error), errors=errors)


@problem_translator(PushRefused)
def _push_refused(error: PushRefused) -> Problem:
    errors = [{"field": error.field, "message": str(error)}]
    return Problem(status=400, code="push-refused", detail=str(error), errors=errors)


@problem_translator(PushOutdated)
def _push_outdated(error: PushOutdated) -> Problem:
    errors = [{"field": error.field, "message": str(error)}]
    return Problem(status=400, code="push-outdated", detail=str(error), errors=errors)


@problem_translator(PushBusy)
def _push_busy(error: PushBusy) -> Problem:
    headers = {"Retry-After": "2"}
    return Problem(status=503, code="push-busy", detail=str(error), headers=headers)


@problem_translator(NodeTokenMismatch)
def _other_node_problem(error: NodeTokenMismatch) -> Problem:
    return Problem(status=403, code="another-node", detail=str(error))


@problem_translator(IsolationRefused)
def _isolation_refused(error: IsolationRefused) -> Problem:
    return Problem(status=422, code="isolation-refused", detail=str(error))


@problem_translator(PolicyRefused)
def _policy_refused(error: PolicyRefused) -> Problem:
    errors = [{"field": each.field, "message": each.message} for each in error.findings]
    return Problem(status=422, code="health-policy-refused", detail=str(error), errors=errors)


@problem_translator(RuleRefused)
def _rule_refused(error: RuleRefused) -> Problem:
    errors = [{"field": error.field, "message": str(error)}]
    return Problem(status=422, code="health-rule-refused", detail=str(error), errors=errors)
