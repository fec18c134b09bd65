"""The kinds of documents that ``apply`` reads."""

from __future__ import annotations

from collections.abc import Mapping

from ninefold_client.kinds.base import Kind
from ninefold_client.kinds.company import (
    CardRateKind,
    CompanyRolesKind,
    PersonalTokenKind,
    RetentionRulesKind,
    StorageQuotaKind,
    TeamKind,
    WebhookKind,
)
from ninefold_client.kinds.fleet import (
    AlertReceiverKind,
    AlertRouteKind,
    AlertRuleKind,
    ClusterKind,
    HealthPolicyKind,
    HealthRuleKind,
    MaintenanceRolloutKind,
    MetricSourceKind,
    PriorityClassKind,
    QueueKind,
    SilenceKind,
)
from ninefold_client.kinds.registry import DatasetKind, ModelKind
from ninefold_client.kinds.workloads import (
    DeploymentKind,
    GatewayKeyKind,
    JobKind,
    PipelineKind,
    RouteKind,
)

#: In the order in which documents are applied: what others refer to comes first. Pruning has the reverse order.
KINDS: Mapping[str, type[Kind]] = {
    one.name: one
    for one in (
        TeamKind,
        CompanyRolesKind,
        PriorityClassKind,
        ClusterKind,
        MetricSourceKind,
        QueueKind,
        AlertReceiverKind,
        AlertRouteKind,
        AlertRuleKind,
        SilenceKind,
        HealthPolicyKind,
        HealthRuleKind,
        WebhookKind,
        StorageQuotaKind,
        RetentionRulesKind,
        CardRateKind,
        DatasetKind,
        JobKind,
        PipelineKind,
        ModelKind,
        DeploymentKind,
        RouteKind,
        GatewayKeyKind,
        PersonalTokenKind,
        MaintenanceRolloutKind,
    )
}

__all__ = ["KINDS", "JobKind", "Kind"]
