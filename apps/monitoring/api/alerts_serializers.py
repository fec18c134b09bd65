from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from apps.monitoring.models import (
    Alert,
    AlertDelivery,
    AlertGroup,
    AlertReceiver,
    AlertRoute,
    AlertRule,
    AlertSilence,
)
from apps.monitoring.selectors import alerts as selectors
from apps.monitoring.selectors.alerts_trials import Trial
from controlplane.domain.alerts.messages import ReceiverKind
from controlplane.domain.alerts.rules import MEASURES, MOST_MATCHERS, Op, Severity
from controlplane.domain.deliveries import DeliveryState
from controlplane.web.rest import Filters, M, Reference, StrictSerializer, VisibleField

_MATCHERS = "Conditions on labels, as cluster=west or node!=test-*."


def _matchers(**more: Any) -> serializers.ListField:
    return serializers.ListField(
        child=serializers.CharField(max_length=250), max_length=MOST_MATCHERS, **more
    )


class AlertMemberSerializer(serializers.ModelSerializer[Alert]):
    class Meta:
        model = Alert
        fields = ("uid", "state", "labels", "value", "href", "began_at", "fired_at", "resolved_at")


class AlertGroupSerializer(serializers.ModelSerializer[AlertGroup]):
    rule = serializers.CharField(source="rule_name")
    labels = serializers.DictField(
        child=serializers.CharField(), help_text="Of those that the rule is grouped by."
    )
    count = serializers.IntegerField(help_text="Alerts of it that fire now.")
    most = serializers.IntegerField(help_text="The most that fired at once.")
    silenced = serializers.IntegerField(help_text="Of those that fire now.")

    class Meta:
        model = AlertGroup
        fields: tuple[str, ...] = (
            "uid",
            "rule",
            "title",
            "severity",
            "labels",
            "count",
            "most",
            "silenced",
            "began_at",
            "told_at",
            "ended_at",
        )


class AlertGroupDetailSerializer(AlertGroupSerializer):
    alerts = serializers.SerializerMethodField(help_text="The newest 100.")

    class Meta(AlertGroupSerializer.Meta):
        fields = (*AlertGroupSerializer.Meta.fields, "alerts")

    @extend_schema_field(AlertMemberSerializer(many=True))
    def get_alerts(self, group: AlertGroup) -> Any:
        return AlertMemberSerializer(group.alerts.order_by("-id")[:100], many=True).data


class AlertFilters(Filters):
    severity = serializers.ChoiceField(choices=[*Severity], required=False)
    rule = serializers.CharField(max_length=60, required=False, help_text="Its name.")
    firing = serializers.BooleanField(required=False, help_text="Only those that go on, or do not.")
    lookups = {"severity": "severity", "rule": "rule_name"}

    @classmethod
    def apply(cls, rows: QuerySet[M, Any], given: Mapping[str, Any]) -> QuerySet[M, Any]:
        rows = super().apply(rows, given)
        return rows.filter(ended_at__isnull=given["firing"]) if "firing" in given else rows


class AlertRuleSerializer(serializers.ModelSerializer[AlertRule]):
    document = serializers.DictField(help_text="The rule itself, as it is made and changed.")
    firing = serializers.IntegerField(default=0, help_text="Alerts that fire now.")

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
            "trouble",
        )


class AlertRuleChangeSerializer(StrictSerializer[Any]):
    title = serializers.CharField(max_length=120, required=False)
    measure = serializers.ChoiceField(choices=[*MEASURES], required=False)
    op = serializers.ChoiceField(choices=[one.value for one in Op], required=False)
    threshold = serializers.FloatField(required=False)
    severity = serializers.ChoiceField(choices=[*Severity], required=False)
    where = _matchers(required=False, help_text=_MATCHERS)
    lasts = serializers.IntegerField(required=False, min_value=0, help_text="Seconds.")
    keeps = serializers.IntegerField(required=False, min_value=0, help_text="Seconds.")
    group_by = serializers.ListField(
        child=serializers.CharField(max_length=40), max_length=10, required=False
    )
    repeat = serializers.IntegerField(
        required=False, allow_null=True, min_value=0, help_text="Seconds; null: told of once."
    )
    enabled = serializers.BooleanField(required=False)


class AlertRuleCreateSerializer(AlertRuleChangeSerializer):
    name = serializers.CharField(max_length=60)
    title = serializers.CharField(max_length=120)
    measure = serializers.ChoiceField(choices=[*MEASURES])
    op = serializers.ChoiceField(choices=[one.value for one in Op])
    threshold = serializers.FloatField()
    severity = serializers.ChoiceField(choices=[*Severity])


class AlertTrialSerializer(serializers.Serializer[Trial]):
    now = serializers.IntegerField(help_text="On how many things it holds now.")
    times = serializers.IntegerField(
        allow_null=True,
        help_text="How often it would have fired in the last 24 hours; null where no history is kept.",
    )
    things = serializers.IntegerField(help_text="On how many things.")
    cut = serializers.BooleanField(help_text="Whether it would have been more often than that.")


class AlertSilenceSerializer(serializers.ModelSerializer[AlertSilence]):
    matchers = serializers.ListField(child=serializers.CharField())

    class Meta:
        model = AlertSilence
        fields = (
            "uid",
            "matchers",
            "reason",
            "began_at",
            "ends_at",
            "made_by_name",
            "ended_by_name",
        )


class AlertSilenceCreateSerializer(StrictSerializer[Any]):
    matchers = _matchers(min_length=1, help_text=_MATCHERS)
    ends_at = serializers.DateTimeField()
    reason = serializers.CharField(max_length=300)


class AlertReceiverSerializer(serializers.ModelSerializer[AlertReceiver]):
    addresses = serializers.ListField(child=serializers.CharField())

    class Meta:
        model = AlertReceiver
        fields = (
            "uid",
            "name",
            "kind",
            "addresses",
            "language",
            "active",
            "made_by_name",
            "created_at",
            "tried_at",
            "last_error",
        )


class AlertReceiverCreateSerializer(StrictSerializer[Any]):
    name = serializers.CharField(max_length=80)
    kind = serializers.ChoiceField(choices=[*ReceiverKind])
    url = serializers.CharField(max_length=2000, required=False, help_text="Not shown again.")
    secret = serializers.CharField(max_length=200, required=False, help_text="Not shown again.")
    addresses = serializers.ListField(
        child=serializers.CharField(max_length=254), max_length=20, required=False
    )
    language = serializers.ChoiceField(
        choices=settings.LANGUAGES, required=False, default=settings.LANGUAGE_CODE
    )


class AlertReceiverChangeSerializer(StrictSerializer[Any]):
    active = serializers.BooleanField(help_text="False pauses it.")


class AlertDeliverySerializer(serializers.ModelSerializer[AlertDelivery]):
    receiver = Reference()
    state = serializers.ChoiceField(choices=[*DeliveryState])

    class Meta:
        model = AlertDelivery
        fields = ("uid", "receiver", "state", "tries", "next_try_at", "ended_at", "status", "error")


class AlertRouteSerializer(serializers.ModelSerializer[AlertRoute]):
    matchers = serializers.ListField(child=serializers.CharField())
    receivers = Reference(many=True)

    class Meta:
        model = AlertRoute
        fields = ("uid", "name", "severity", "matchers", "receivers", "enabled")


class AlertRouteWriteSerializer(StrictSerializer[Any]):
    name = serializers.CharField(max_length=80)
    severity = serializers.ChoiceField(choices=[*Severity])
    matchers = _matchers(required=False, default=list, help_text=_MATCHERS)
    receivers = VisibleField(
        visible=selectors.receivers_visible, many=True, help_text="Their uids; at least one."
    )
    enabled = serializers.BooleanField(required=False, default=True)
