"""REST of alert rules and health rules."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, ClassVar

from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_field, extend_schema_view
from rest_framework import serializers, status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.api.authentication import acting_user
from apps.accounts.api.idempotency import idempotent
from apps.fleet.selectors import require_fleet_operator
from apps.monitoring.api.alerts import MATCHERS, FleetOperatorViewSet, matchers_field
from apps.monitoring.api.faults import LEVELS
from apps.monitoring.models import AlertRule, HealthRule
from apps.monitoring.selectors.alerts import alert_rules_visible
from apps.monitoring.selectors.rule_samples import (
    AlertRuleTrial,
    alert_rule_dry_run,
    health_rule_trial,
)
from apps.monitoring.services import alerts, health_rules
from controlplane.domain.alerts.rules import MEASURES, AlertSeverity, parse_rule
from controlplane.domain.common.permissions import Scope
from controlplane.domain.health.rules import MetricTransform, parse_health_condition
from controlplane.domain.rules.conditions import Comparison
from controlplane.domain.telemetry.metrics import Metric
from controlplane.web import rest


class AlertRuleChangeSerializer(rest.StrictSerializer[Any]):
    title = serializers.CharField(max_length=120, required=False)
    measure = serializers.ChoiceField(choices=[*MEASURES], required=False)
    op = rest.EnumField(Comparison, required=False)
    threshold = serializers.FloatField(required=False)
    severity = rest.EnumField(AlertSeverity, required=False)
    where = matchers_field(required=False, help_text=MATCHERS)
    lasts = serializers.IntegerField(required=False, min_value=0, help_text="Duration in seconds.")
    keeps = serializers.IntegerField(required=False, min_value=0, help_text="Duration in seconds.")
    group_by = serializers.ListField(
        child=serializers.CharField(max_length=40), max_length=10, required=False
    )
    repeat = serializers.IntegerField(
        required=False,
        allow_null=True,
        min_value=0,
        help_text="Repeat interval in seconds; null: notify once.",
    )
    enabled = serializers.BooleanField(required=False)


class AlertRuleCreateSerializer(AlertRuleChangeSerializer):
    name = serializers.CharField(max_length=60)
    title = serializers.CharField(max_length=120)
    measure = serializers.ChoiceField(choices=[*MEASURES])
    op = rest.EnumField(Comparison)
    threshold = serializers.FloatField()
    severity = rest.EnumField(AlertSeverity)


class AlertRuleDocumentSerializer(AlertRuleCreateSerializer):
    """The definition of a rule, with every field."""

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        fields = super().get_fields()
        for field in fields.values():
            field.required = True
        return fields


class AlertRuleSerializer(serializers.ModelSerializer[AlertRule]):
    document = serializers.SerializerMethodField(help_text="Definition of the rule.")
    firing = serializers.IntegerField(default=0, help_text="Firing alerts.")

    class Meta:
        model = AlertRule
        fields = (
            "uid",
            "name",
            "title",
            "severity",
            "enabled",
            "shipped",
            "document",
            "firing",
            "changed_by_name",
            "changed_at",
            "evaluated_at",
            "error",
        )

    @extend_schema_field(AlertRuleDocumentSerializer)
    def get_document(self, rule: AlertRule) -> dict[str, Any]:
        return dict(rule.document)


class AlertTrialSerializer(serializers.Serializer[AlertRuleTrial]):
    now = serializers.IntegerField(help_text="Objects for which the condition is met now.")
    times = serializers.IntegerField(
        allow_null=True,
        help_text="Firings in the last 24 hours; null if no history is available.",
    )
    things = serializers.IntegerField(help_text="Objects for which it would have fired.")
    cut = serializers.BooleanField(help_text="Whether the number of firings was truncated.")


_DURATION = {"type": "string", "description": "Duration, for example 90s, 10m or 2h."}


@extend_schema_field(
    {
        "type": "object",
        "properties": {
            "metric": {"type": "string", "enum": [metric.value for metric in Metric]},
            "how": {
                "type": "string",
                "enum": [how.value for how in MetricTransform],
                "description": "What is compared: the value, its change or its rate per minute.",
            },
            "op": {"type": "string", "description": "Comparison, for example >."},
            "value": {"type": "number", "description": "Threshold in the unit of the metric."},
            "for": _DURATION,
            "within": _DURATION,
            "chips": {
                "type": "array",
                "items": {"type": "string"},
                "description": "Chips of the cards; absent: all.",
            },
        },
    }
)
class HealthConditionField(serializers.DictField):
    """Condition of a health rule, which the service validates."""


class HealthRuleSerializer(serializers.ModelSerializer[HealthRule]):
    condition = HealthConditionField()
    level = serializers.IntegerField()

    class Meta:
        model = HealthRule
        fields = ("uid", "name", "title", "enabled", "condition", "level", "changed_at")


class HealthRuleChangeSerializer(rest.StrictSerializer[Any]):
    title = serializers.CharField(required=False, allow_blank=True, max_length=120)
    condition = HealthConditionField(required=False)
    level = serializers.ChoiceField(choices=LEVELS, required=False)
    enabled = serializers.BooleanField(required=False)


class HealthRuleCreateSerializer(HealthRuleChangeSerializer):
    name = serializers.SlugField(max_length=60)
    condition = HealthConditionField()
    level = serializers.ChoiceField(choices=LEVELS)


class HealthRuleDryRunSerializer(rest.StrictSerializer[Any]):
    condition = HealthConditionField()
    hours = serializers.IntegerField(required=False, default=24, min_value=1, max_value=72)


class RuleFiringSerializer(serializers.Serializer[Any]):
    began_at = serializers.DateTimeField()
    fired_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)
    worst = serializers.FloatField(help_text="Value that exceeded the threshold most.")


class HealthRuleTrialSerializer(serializers.Serializer[Any]):
    card = rest.ObjectReference()
    firings = RuleFiringSerializer(many=True)


class HealthRuleTrialsSerializer(serializers.Serializer[Any]):
    since = serializers.DateTimeField()
    cards = serializers.IntegerField(help_text="Number of evaluated cards.")
    times = serializers.IntegerField(help_text="Number of firings.")
    trials = HealthRuleTrialSerializer(many=True)


class RuleViewSet(rest.CollectionViewSet[rest.M]):
    token_scope = Scope.ADMIN
    #: The services that create, change and delete a rule.
    rule_create: ClassVar[Callable[..., Any]]
    rule_change: ClassVar[Callable[..., Any]]
    rule_delete: ClassVar[Callable[..., None]]
    create_serializer: ClassVar[type[rest.StrictSerializer[Any]]]
    change_serializer: ClassVar[type[rest.StrictSerializer[Any]]]

    @rest.supports_dry_run
    @idempotent
    def create(self, request: Request) -> Response:
        document, actor = self.validated_body(self.create_serializer), acting_user(request)
        row = self.rule_create(document=document, actor=actor, at=timezone.now())
        return Response(self.get_serializer(row).data, status=status.HTTP_201_CREATED)

    @rest.supports_dry_run
    def partial_update(self, request: Request, uid: str) -> Response:
        document, actor = self.validated_body(self.change_serializer), acting_user(request)
        row, at = self.get_object(), timezone.now()
        self.rule_change(rule=row, document=document, actor=actor, at=at)
        return Response(self.get_serializer(self.get_object()).data)

    @rest.supports_dry_run
    def destroy(self, request: Request, uid: str) -> Response:
        actor = acting_user(request)
        self.rule_delete(rule=self.get_object(), actor=actor, at=timezone.now())
        return Response(status=status.HTTP_204_NO_CONTENT)


@extend_schema_view(
    create=extend_schema(request=AlertRuleCreateSerializer),
    partial_update=extend_schema(request=AlertRuleChangeSerializer),
    destroy=extend_schema(
        summary="Delete an alert rule",
        description="Its firing alerts resolve. Built-in rules can only be disabled.",
    ),
)
class AlertRuleViewSet(FleetOperatorViewSet[AlertRule], RuleViewSet[AlertRule]):
    tag = "alerts"
    summaries = {
        "list": "Alert rules",
        "retrieve": "An alert rule",
        "create": "Create an alert rule",
        "partial_update": "Change, enable or disable an alert rule",
    }
    rule_create = staticmethod(alerts.alert_rule_create)
    rule_change = staticmethod(alerts.alert_rule_change)
    rule_delete = staticmethod(alerts.alert_rule_delete)
    serializer_class = AlertRuleSerializer
    create_serializer = AlertRuleCreateSerializer
    change_serializer = AlertRuleChangeSerializer
    visible = staticmethod(alert_rules_visible)

    @extend_schema(
        summary="Dry run of an alert rule",
        description="Evaluates the rule now and over the last 24 hours. Nothing is stored.",
        request=AlertRuleCreateSerializer,
        responses=AlertTrialSerializer,
    )
    @action(detail=False, methods=["post"])
    def trial(self, request: Request) -> Response:
        rule = parse_rule(self.validated_body(AlertRuleCreateSerializer))
        return Response(AlertTrialSerializer(alert_rule_dry_run(rule, at=timezone.now())).data)


@extend_schema_view(
    create=extend_schema(request=HealthRuleCreateSerializer),
    partial_update=extend_schema(request=HealthRuleChangeSerializer),
)
class HealthRuleViewSet(RuleViewSet[HealthRule]):
    """Conditions on metrics of cards, and the severity of their faults."""

    tag = "health"
    summaries = {
        "list": "Health rules",
        "retrieve": "Get a health rule",
        "create": "Create a health rule",
        "partial_update": "Change a health rule",
        "destroy": "Delete a health rule",
    }
    rule_create = staticmethod(health_rules.health_rule_create)
    rule_change = staticmethod(health_rules.health_rule_change)
    rule_delete = staticmethod(health_rules.health_rule_delete)
    serializer_class = HealthRuleSerializer
    create_serializer = HealthRuleCreateSerializer
    change_serializer = HealthRuleChangeSerializer
    visible = staticmethod(lambda _user: HealthRule.objects.all())

    @extend_schema(
        summary="Dry run of a health rule on stored metrics",
        description="Returns the firings of the last hours by card. Nothing is changed.",
        request=HealthRuleDryRunSerializer,
        responses=HealthRuleTrialsSerializer,
    )
    @action(detail=False, methods=["post"], url_path="dry-run")
    def dry_run(self, request: Request) -> Response:
        require_fleet_operator(acting_user(request))
        given = self.validated_body(HealthRuleDryRunSerializer)
        condition = parse_health_condition(given["condition"])
        back = timedelta(hours=given["hours"])
        trials = health_rule_trial(condition, back=back, at=timezone.now())
        return Response(HealthRuleTrialsSerializer(trials).data)
