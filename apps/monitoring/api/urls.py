from __future__ import annotations

from django.urls import URLPattern, URLResolver, path
from rest_framework.routers import SimpleRouter

from apps.monitoring.api import (
    alerts,
    faults,
    maintenance_rollouts,
    metric_ingestion,
    problem_details,
    rules,
    suppressed_actions,
)

#: Imported for what it registers.
REGISTERS = (problem_details,)

router = SimpleRouter(trailing_slash=False)
router.register("rollouts", maintenance_rollouts.MaintenanceRolloutViewSet, basename="api-rollout")
router.register("alerts", alerts.AlertViewSet, basename="api-alert")
router.register("alert-rules", rules.AlertRuleViewSet, basename="api-alert-rule")
router.register("alert-silences", alerts.AlertSilenceViewSet, basename="api-alert-silence")
router.register("alert-receivers", alerts.AlertReceiverViewSet, basename="api-alert-receiver")
router.register("alert-routes", alerts.AlertRouteViewSet, basename="api-alert-route")
router.register(
    "telemetry-sources", metric_ingestion.MetricSourceViewSet, basename="api-telemetry-source"
)
router.register("node-tokens", metric_ingestion.NodeTokenViewSet, basename="api-node-token")

router.register("faults", faults.FaultViewSet, basename="api-fault")
router.register("isolations", faults.IsolationViewSet, basename="api-isolation")
router.register("health-rules", rules.HealthRuleViewSet, basename="api-health-rule")

urlpatterns: list[URLPattern | URLResolver] = [
    path("telemetry/push", metric_ingestion.MetricsPushView.as_view(), name="api-telemetry-push"),
    path("held-back", suppressed_actions.SuppressedActionsView.as_view(), name="api-held-back"),
    path(
        "held-back/isolate",
        suppressed_actions.SuppressedIsolateView.as_view(),
        name="api-held-isolate",
    ),
    path(
        "held-back/leave", suppressed_actions.SuppressedDismissView.as_view(), name="api-held-leave"
    ),
    path("health-policy", faults.HealthPolicyView.as_view(), name="api-health-policy"),
    *router.urls,
]
