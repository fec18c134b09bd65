from __future__ import annotations

from django.urls import path

from apps.monitoring.web import alerts, alerts_routes, alerts_rules

urlpatterns = [
    path("fleet/alerts", alerts.alerts, name="alerts"),
    path("fleet/alerts/past", alerts.alerts, {"past": True}, name="alerts-past"),
    path("fleet/alerts/silences", alerts.silences, name="alert-silences"),
    path("fleet/alerts/silences/new", alerts.silence_new, name="alert-silence-new"),
    path("fleet/alerts/silences/<str:uid>/end", alerts.silence_end, name="alert-silence-end"),
    path("fleet/alerts/rules", alerts_rules.rules, name="alert-rules"),
    path("fleet/alerts/rules/new", alerts_rules.rule_new, name="alert-rule-new"),
    path("fleet/alerts/rules/<str:uid>", alerts_rules.rule, name="alert-rule"),
    path("fleet/alerts/rules/<str:uid>/delete", alerts_rules.rule_delete, name="alert-rule-delete"),
    path("fleet/alerts/routes", alerts_routes.routes, name="alert-routes"),
    path("fleet/alerts/routes/new", alerts_routes.route_new, name="alert-route-new"),
    path("fleet/alerts/routes/<str:uid>", alerts_routes.route, name="alert-route"),
    path(
        "fleet/alerts/routes/<str:uid>/delete",
        alerts_routes.route_delete,
        name="alert-route-delete",
    ),
    path("fleet/alerts/receivers/new", alerts_routes.receiver_new, name="alert-receiver-new"),
    path(
        "fleet/alerts/receivers/<str:uid>/test",
        alerts_routes.receiver_test,
        name="alert-receiver-test",
    ),
    path(
        "fleet/alerts/receivers/<str:uid>/pause",
        alerts_routes.receiver_switch,
        {"active": False},
        name="alert-receiver-pause",
    ),
    path(
        "fleet/alerts/receivers/<str:uid>/resume",
        alerts_routes.receiver_switch,
        {"active": True},
        name="alert-receiver-resume",
    ),
    path(
        "fleet/alerts/receivers/<str:uid>/delete",
        alerts_routes.receiver_delete,
        name="alert-receiver-delete",
    ),
    path("fleet/alerts/<str:uid>", alerts.alert, name="alert"),
]
