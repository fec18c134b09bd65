"""Faults, isolations, rules, alerts and maintenance rollouts, read-only."""

from __future__ import annotations

from django.contrib import admin

from apps.monitoring.models import (
    Alert,
    AlertDelivery,
    AlertGroup,
    AlertNotice,
    AlertReceiver,
    AlertRoute,
    AlertRule,
    AlertSilence,
    Decision,
    Fault,
    HealthPolicy,
    HealthRule,
    Isolation,
    IsolationTransition,
    Rollout,
    RolloutNode,
)
from controlplane.web.admin import ReadOnlyAdmin


@admin.register(Fault)
class FaultAdmin(ReadOnlyAdmin[Fault]):
    list_display = ("code", "level", "node", "card", "origin", "began_at", "ended_at", "count")
    list_filter = ("level", "origin", "vendor", ("ended_at", admin.EmptyFieldListFilter))
    search_fields = ("code", "uid", "node__name")
    list_select_related = ("node", "card__node")


@admin.register(Decision)
class DecisionAdmin(ReadOnlyAdmin[Decision]):
    list_display = ("action", "outcome", "node", "card", "reason", "actor_name", "at")
    list_filter = ("action", "outcome")
    search_fields = ("uid", "node__name", "reason")
    list_select_related = ("node", "card__node")


@admin.register(Isolation)
class IsolationAdmin(ReadOnlyAdmin[Isolation]):
    list_display = ("node", "card", "state", "reason", "actor_name", "began_at", "ended_at")
    list_filter = ("state", ("ended_at", admin.EmptyFieldListFilter))
    search_fields = ("uid", "node__name", "reason")
    list_select_related = ("node", "card__node")


@admin.register(HealthRule)
class HealthRuleAdmin(ReadOnlyAdmin[HealthRule]):
    list_display = ("name", "title", "level", "enabled", "changed_by", "changed_at")
    list_filter = ("level", "enabled")
    search_fields = ("name", "title")
    list_select_related = ("changed_by",)


@admin.register(HealthPolicy)
class HealthPolicyAdmin(ReadOnlyAdmin[HealthPolicy]):
    list_display = ("automatic", "changed_by", "changed_at")
    list_select_related = ("changed_by",)


@admin.register(AlertRule)
class AlertRuleAdmin(ReadOnlyAdmin[AlertRule]):
    list_display = ("name", "severity", "enabled", "shipped", "evaluated_at", "error")
    list_filter = ("severity", "enabled", "shipped")
    search_fields = ("name", "title", "uid")


@admin.register(AlertGroup)
class AlertGroupAdmin(ReadOnlyAdmin[AlertGroup]):
    list_display = ("title", "severity", "labels", "count", "began_at", "notified_at", "ended_at")
    list_filter = ("severity", ("ended_at", admin.EmptyFieldListFilter))
    search_fields = ("rule_name", "title", "uid")
    list_select_related = ("rule",)


@admin.register(Alert)
class AlertAdmin(ReadOnlyAdmin[Alert]):
    list_display = ("__str__", "rule", "state", "value", "began_at", "resolved_at")
    list_filter = ("state", "rule")
    search_fields = ("uid", "rule__name")
    list_select_related = ("rule", "group")


@admin.register(AlertNotice)
class AlertNoticeAdmin(ReadOnlyAdmin[AlertNotice]):
    list_display = ("group", "kind", "number", "at")
    list_filter = ("kind",)
    search_fields = ("uid", "group__rule_name")
    list_select_related = ("group",)


@admin.register(AlertDelivery)
class AlertDeliveryAdmin(ReadOnlyAdmin[AlertDelivery]):
    list_display = ("notice", "receiver", "state", "tries", "next_try_at", "status", "error")
    list_filter = ("state", "receiver")
    search_fields = ("uid", "receiver__name")
    list_select_related = ("notice", "receiver")


@admin.register(AlertSilence)
class AlertSilenceAdmin(ReadOnlyAdmin[AlertSilence]):
    list_display = ("name", "matchers", "reason", "created_by_name", "began_at", "ends_at")
    search_fields = ("name", "uid", "reason", "created_by_name")


@admin.register(AlertReceiver)
class AlertReceiverAdmin(ReadOnlyAdmin[AlertReceiver]):
    list_display = ("name", "kind", "active", "tried_at", "last_error")
    list_filter = ("kind", "active")
    search_fields = ("name", "uid")
    exclude = ("url", "secret")


@admin.register(AlertRoute)
class AlertRouteAdmin(ReadOnlyAdmin[AlertRoute]):
    list_display = ("name", "severity", "matchers", "enabled")
    list_filter = ("severity", "enabled")
    search_fields = ("name", "uid")


@admin.register(IsolationTransition)
class IsolationTransitionAdmin(ReadOnlyAdmin[IsolationTransition]):
    list_display = ("isolation", "from_state", "event", "to_state", "reason", "actor", "at")
    list_filter = ("event",)
    search_fields = ("isolation__uid",)
    list_select_related = ("isolation__node", "isolation__card__node")


@admin.register(Rollout)
class RolloutAdmin(ReadOnlyAdmin[Rollout]):
    list_display = ("name", "cluster", "state", "created_by", "created_at", "ended_at")
    list_filter = ("state", "cluster")
    search_fields = ("name", "uid")
    list_select_related = ("cluster", "created_by")


@admin.register(RolloutNode)
class RolloutNodeAdmin(ReadOnlyAdmin[RolloutNode]):
    list_display = ("rollout", "node", "domain", "state", "exit_code", "reason", "changed_at")
    list_filter = ("state",)
    search_fields = ("rollout__name", "node__name", "uid")
    list_select_related = ("rollout", "node")
