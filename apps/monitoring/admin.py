"""Faults, isolations, rules, alerts and maintenance rollouts, read-only."""

from __future__ import annotations

from django.contrib import admin

from apps.monitoring import models
from controlplane.web.admin import ReadOnlyAdmin


@admin.register(models.Fault)
class FaultAdmin(ReadOnlyAdmin[models.Fault]):
    list_display = ("code", "level", "node", "card", "origin", "began_at", "ended_at", "count")
    list_filter = ("level", "origin", "vendor", ("ended_at", admin.EmptyFieldListFilter))
    search_fields = ("code", "uid", "node__name")
    list_select_related = ("node", "card__node")


@admin.register(models.Decision)
class DecisionAdmin(ReadOnlyAdmin[models.Decision]):
    list_display = ("action", "outcome", "node", "card", "reason", "actor_name", "at")
    list_filter = ("action", "outcome")
    search_fields = ("uid", "node__name", "reason")
    list_select_related = ("node", "card__node")


@admin.register(models.Isolation)
class IsolationAdmin(ReadOnlyAdmin[models.Isolation]):
    list_display = ("node", "card", "state", "reason", "actor_name", "began_at", "ended_at")
    list_filter = ("state", ("ended_at", admin.EmptyFieldListFilter))
    search_fields = ("uid", "node__name", "reason")
    list_select_related = ("node", "card__node")


@admin.register(models.HealthRule)
class HealthRuleAdmin(ReadOnlyAdmin[models.HealthRule]):
    list_display = ("name", "title", "level", "enabled", "changed_by", "changed_at")
    list_filter = ("level", "enabled")
    search_fields = ("name", "title")
    list_select_related = ("changed_by",)


@admin.register(models.HealthPolicy)
class HealthPolicyAdmin(ReadOnlyAdmin[models.HealthPolicy]):
    list_display = ("automatic", "changed_by", "changed_at")
    list_select_related = ("changed_by",)


@admin.register(models.AlertRule)
class AlertRuleAdmin(ReadOnlyAdmin[models.AlertRule]):
    list_display = ("name", "severity", "enabled", "shipped", "evaluated_at", "error")
    list_filter = ("severity", "enabled", "shipped")
    search_fields = ("name", "title", "uid")


@admin.register(models.AlertGroup)
class AlertGroupAdmin(ReadOnlyAdmin[models.AlertGroup]):
    list_display = ("title", "severity", "labels", "count", "began_at", "notified_at", "ended_at")
    list_filter = ("severity", ("ended_at", admin.EmptyFieldListFilter))
    search_fields = ("rule_name", "title", "uid")
    list_select_related = ("rule",)


@admin.register(models.Alert)
class AlertAdmin(ReadOnlyAdmin[models.Alert]):
    list_display = ("__str__", "rule", "state", "value", "began_at", "resolved_at")
    list_filter = ("state", "rule")
    search_fields = ("uid", "rule__name")
    list_select_related = ("rule", "group")


@admin.register(models.AlertNotice)
class AlertNoticeAdmin(ReadOnlyAdmin[models.AlertNotice]):
    list_display = ("group", "kind", "number", "at")
    list_filter = ("kind",)
    search_fields = ("uid", "group__rule_name")
    list_select_related = ("group",)


@admin.register(models.AlertDelivery)
class AlertDeliveryAdmin(ReadOnlyAdmin[models.AlertDelivery]):
    list_display = ("notice", "receiver", "state", "tries", "next_try_at", "status", "error")
    list_filter = ("state", "receiver")
    search_fields = ("uid", "receiver__name")
    list_select_related = ("notice", "receiver")


@admin.register(models.AlertSilence)
class AlertSilenceAdmin(ReadOnlyAdmin[models.AlertSilence]):
    list_display = ("name", "matchers", "reason", "created_by_name", "began_at", "ends_at")
    search_fields = ("name", "uid", "reason", "created_by_name")


@admin.register(models.AlertReceiver)
class AlertReceiverAdmin(ReadOnlyAdmin[models.AlertReceiver]):
    list_display = ("name", "kind", "active", "tried_at", "last_error")
    list_filter = ("kind", "active")
    search_fields = ("name", "uid")
    exclude = ("url", "secret")


@admin.register(models.AlertRoute)
class AlertRouteAdmin(ReadOnlyAdmin[models.AlertRoute]):
    list_display = ("name", "severity", "matchers", "enabled")
    list_filter = ("severity", "enabled")
    search_fields = ("name", "uid")


@admin.register(models.IsolationTransition)
class IsolationTransitionAdmin(ReadOnlyAdmin[models.IsolationTransition]):
    list_display = ("isolation", "from_state", "event", "to_state", "reason", "actor", "at")
    list_filter = ("event",)
    search_fields = ("isolation__uid",)
    list_select_related = ("isolation__node", "isolation__card__node")


@admin.register(models.Rollout)
class RolloutAdmin(ReadOnlyAdmin[models.Rollout]):
    list_display = ("name", "cluster", "state", "created_by", "created_at", "ended_at")
    list_filter = ("state", "cluster")
    search_fields = ("name", "uid")
    list_select_related = ("cluster", "created_by")


@admin.register(models.RolloutNode)
class RolloutNodeAdmin(ReadOnlyAdmin[models.RolloutNode]):
    list_display = ("rollout", "node", "domain", "state", "exit_code", "reason", "changed_at")
    list_filter = ("state",)
    search_fields = ("rollout__name", "node__name", "uid")
    list_select_related = ("rollout", "node")
