from __future__ import annotations

from django.urls import path

from apps.monitoring.web import alerts, faults
from apps.monitoring.web import maintenance_rollouts as rollouts
from apps.monitoring.web import suppressed_actions as suppressed
from controlplane.domain.health.maintenance_rollouts import RolloutEvent

_CARD = "fleet/cards/<str:uid>"
_SOURCE = "fleet/sources/<str:uid>"
_NODE = "fleet/clusters/<str:uid>/nodes/<str:name>"
_ROLLOUT = "fleet/rollouts/<str:uid>"
_RULE = "fleet/alerts/rules/<str:uid>"
_ROUTE = "fleet/alerts/routes/<str:uid>"
_RECEIVER = "fleet/alerts/receivers/<str:uid>"

urlpatterns = [
    path("fleet/alerts", alerts.alerts, name="alerts"),
    path("fleet/alerts/past", alerts.alerts, {"past": True}, name="alerts-past"),
    path("fleet/alerts/silences", alerts.silences, name="alert-silences"),
    path("fleet/alerts/silences/new", alerts.silence_new, name="alert-silence-new"),
    path("fleet/alerts/silences/<str:uid>/end", alerts.silence_end, name="alert-silence-end"),
    path("fleet/alerts/rules", alerts.alert_rule_list, name="alert-rules"),
    path("fleet/alerts/rules/new", alerts.alert_rule_new_view, name="alert-rule-new"),
    path(_RULE, alerts.alert_rule_detail, name="alert-rule"),
    path(f"{_RULE}/delete", alerts.alert_rule_delete_view, name="alert-rule-delete"),
    path("fleet/alerts/routes", alerts.alert_route_list, name="alert-routes"),
    path("fleet/alerts/routes/new", alerts.alert_route_new_view, name="alert-route-new"),
    path(_ROUTE, alerts.alert_route_detail, name="alert-route"),
    path(f"{_ROUTE}/delete", alerts.alert_route_delete_view, name="alert-route-delete"),
    path("fleet/alerts/receivers/new", alerts.alert_receiver_new_view, name="alert-receiver-new"),
    path(f"{_RECEIVER}/test", alerts.alert_receiver_test_view, name="alert-receiver-test"),
    *(
        path(
            f"{_RECEIVER}/{verb}",
            alerts.alert_receiver_switch_view,
            {"active": active},
            name=f"alert-receiver-{verb}",
        )
        for verb, active in (("pause", False), ("resume", True))
    ),
    path(f"{_RECEIVER}/delete", alerts.alert_receiver_delete_view, name="alert-receiver-delete"),
    path("fleet/alerts/<str:uid>", alerts.alert, name="alert"),
    path("fleet/rollouts", rollouts.maintenance_rollout_list, name="rollouts"),
    path("fleet/rollouts/new", rollouts.maintenance_rollout_new_view, name="rollout-new"),
    path(_ROLLOUT, rollouts.maintenance_rollout_detail, name="rollout"),
    *(
        path(
            f"{_ROLLOUT}/{verb}",
            rollouts.maintenance_rollout_control_view,
            {"event": event},
            name=f"rollout-{verb}",
        )
        for verb, event in (
            ("pause", RolloutEvent.PAUSE),
            ("resume", RolloutEvent.RESUME),
            ("cancel", RolloutEvent.CANCEL),
        )
    ),
    path(f"{_CARD}/isolate", faults.card_isolate, name="card-isolate"),
    path(f"{_CARD}/release", faults.card_release, name="card-release"),
    path(f"{_CARD}/test", faults.card_burn_in_request, name="card-test"),
    path("fleet/faults", faults.faults, name="faults"),
    path("fleet/faults/acknowledge", faults.selected_faults_acknowledge, name="faults-acknowledge"),
    path("fleet/faults/isolate", faults.selected_faults_isolate, name="faults-isolate"),
    path("fleet/faults/release", faults.selected_faults_release, name="faults-release"),
    path("jobs/<str:uid>/fault-marks", faults.job_fault_marks, name="job-fault-marks"),
    path("fleet/held-back", suppressed.suppressed_actions, name="held-back"),
    path(
        "fleet/held-back/isolate", suppressed.suppressed_actions_isolate, name="held-back-isolate"
    ),
    path("fleet/held-back/leave", suppressed.suppressed_actions_dismiss, name="held-back-leave"),
    path(
        "fleet/sources/tokens/<str:uid>/revoke",
        faults.agent_token_revoke_view,
        name="node-token-revoke",
    ),
    path(f"{_SOURCE}/delete", faults.metric_source_delete_view, name="source-delete"),
    path(f"{_NODE}/isolate", faults.node_isolate, name="node-isolate"),
    path(f"{_NODE}/release", faults.node_release, name="node-release"),
]
