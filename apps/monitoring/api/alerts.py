"""REST of alerts, rules, silences, receivers and routes, for operators of the fleet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.api.authentication import acting_user
from apps.accounts.api.idempotency import idempotent, post_action
from apps.fleet.selectors import require_fleet_operator
from apps.monitoring.models import (
    Alert,
    AlertDelivery,
    AlertGroup,
    AlertReceiver,
    AlertRoute,
    AlertSilence,
)
from apps.monitoring.selectors import alerts as selectors
from apps.monitoring.services import alerts
from apps.monitoring.services.alerts import (
    AlertReceiverRequest,
    AlertRouteRequest,
)
from controlplane.domain.alerts.chat_messages import ReceiverKind
from controlplane.domain.alerts.deliveries import DeliveryState
from controlplane.domain.alerts.rules import (
    MOST_MATCHERS,
    AlertSeverity,
)
from controlplane.domain.common.permissions import Scope
from controlplane.web import rest

MATCHERS = "Conditions on labels, as cluster=west or node!=test-*."


def matchers_field(**more: Any) -> serializers.ListField:
    return serializers.ListField(
        child=serializers.CharField(max_length=250), max_length=MOST_MATCHERS, **more
    )


class AlertMemberSerializer(serializers.ModelSerializer[Alert]):
    labels = serializers.DictField(
        child=serializers.CharField(), help_text="Labels of the object that the rule compares."
    )

    class Meta:
        model = Alert
        fields = ("uid", "state", "labels", "value", "href", "began_at", "fired_at", "resolved_at")


class AlertGroupSerializer(serializers.ModelSerializer[AlertGroup]):
    rule = serializers.CharField(source="rule_name")
    labels = serializers.DictField(
        child=serializers.CharField(), help_text="Labels that the rule groups by."
    )
    count = serializers.IntegerField(help_text="Firing alerts of the group.")
    most = serializers.IntegerField(
        help_text="Maximum number of alerts that fired at the same time."
    )
    silenced = serializers.IntegerField(help_text="Firing alerts that are silenced.")

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
            "notified_at",
            "ended_at",
        )


class AlertGroupDetailSerializer(AlertGroupSerializer):
    alerts = serializers.SerializerMethodField(help_text="Latest 100 alerts.")

    class Meta(AlertGroupSerializer.Meta):
        fields = (*AlertGroupSerializer.Meta.fields, "alerts")

    @extend_schema_field(AlertMemberSerializer(many=True))
    def get_alerts(self, group: AlertGroup) -> Any:
        return AlertMemberSerializer(group.alerts.order_by("-id")[:100], many=True).data


class AlertFilters(rest.ListFilters):
    severity = rest.EnumField(AlertSeverity, required=False)
    rule = serializers.CharField(max_length=60, required=False, help_text="Name of the object.")
    firing = serializers.BooleanField(
        required=False, help_text="Return only firing groups, or only resolved ones."
    )
    lookups = {"severity": "severity", "rule": "rule_name"}

    @classmethod
    def apply(cls, rows: QuerySet[rest.M, Any], given: Mapping[str, Any]) -> QuerySet[rest.M, Any]:
        rows = super().apply(rows, given)
        return rows.filter(ended_at__isnull=given["firing"]) if "firing" in given else rows


class AlertSilenceSerializer(serializers.ModelSerializer[AlertSilence]):
    matchers = rest.TextListField()

    class Meta:
        model = AlertSilence
        fields = (
            "uid",
            "name",
            "matchers",
            "reason",
            "began_at",
            "ends_at",
            "created_by_name",
            "ended_by_name",
        )


class AlertSilenceCreateSerializer(rest.StrictSerializer[Any]):
    name = serializers.CharField(
        max_length=80, help_text="Unique among the silences that have not expired."
    )
    matchers = matchers_field(min_length=1, help_text=MATCHERS)
    ends_at = serializers.DateTimeField(help_text="Within 30 days from now.")
    reason = serializers.CharField(max_length=300)


class AlertSilenceChangeSerializer(rest.StrictSerializer[Any]):
    matchers = matchers_field(min_length=1, required=False, help_text=MATCHERS)
    ends_at = serializers.DateTimeField(required=False, help_text="Within 30 days from now.")
    reason = serializers.CharField(max_length=300, required=False)


class AlertReceiverSerializer(serializers.ModelSerializer[AlertReceiver]):
    addresses = rest.TextListField()

    class Meta:
        model = AlertReceiver
        fields = (
            "uid",
            "name",
            "kind",
            "addresses",
            "language",
            "active",
            "created_by_name",
            "created_at",
            "tried_at",
            "last_error",
        )


class AlertReceiverCreateSerializer(rest.StrictSerializer[Any]):
    name = serializers.CharField(max_length=80)
    kind = rest.EnumField(ReceiverKind)
    url = serializers.CharField(max_length=2000, required=False, help_text="Write-only.")
    secret = serializers.CharField(max_length=200, required=False, help_text="Write-only.")
    addresses = serializers.ListField(
        child=serializers.CharField(max_length=254), max_length=20, required=False
    )
    language = serializers.ChoiceField(
        choices=settings.LANGUAGES, required=False, default=settings.LANGUAGE_CODE
    )
    active = serializers.BooleanField(required=False, help_text="False: paused. Default: true.")


class AlertReceiverChangeSerializer(rest.StrictSerializer[Any]):
    active = serializers.BooleanField(help_text="False: paused.")


class AlertDeliverySerializer(serializers.ModelSerializer[AlertDelivery]):
    receiver = rest.ObjectReference()
    state = rest.EnumField(DeliveryState)

    class Meta:
        model = AlertDelivery
        fields = ("uid", "receiver", "state", "tries", "next_try_at", "ended_at", "status", "error")


class AlertRouteSerializer(serializers.ModelSerializer[AlertRoute]):
    matchers = rest.TextListField()
    receivers = rest.ObjectReference(many=True)

    class Meta:
        model = AlertRoute
        fields = ("uid", "name", "severity", "matchers", "receivers", "enabled")


class AlertRouteWriteSerializer(rest.StrictSerializer[Any]):
    name = serializers.CharField(max_length=80)
    severity = rest.EnumField(AlertSeverity)
    matchers = matchers_field(required=False, default=list, help_text=MATCHERS)
    receivers = rest.VisibleUidField(
        visible=selectors.receivers_visible, many=True, help_text="Uids of receivers; at least one."
    )
    enabled = serializers.BooleanField(required=False, default=True)


class FleetOperatorViewSet(rest.CollectionViewSet[rest.M]):
    token_scope = Scope.ADMIN

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """:raises PermissionRefused: unless the caller operates the fleet."""
        super().initial(request, *args, **kwargs)
        require_fleet_operator(request.user)


class AlertViewSet(FleetOperatorViewSet[AlertGroup]):
    """Alerts of one rule that belong together, from the first that fires until none does."""

    tag = "alerts"
    summaries = {"list": "Alert groups", "retrieve": "Get an alert group with its alerts"}
    queries = {"list": AlertFilters}
    serializer_class = AlertGroupSerializer
    detail_serializer_class = AlertGroupDetailSerializer
    visible = staticmethod(selectors.alert_groups_visible)


class AlertSilenceViewSet(FleetOperatorViewSet[AlertSilence]):
    tag = "alerts"
    summaries = {"list": "Silences, newest first", "retrieve": "A silence"}
    serializer_class = AlertSilenceSerializer
    visible = staticmethod(selectors.silences_visible)

    @extend_schema(
        summary="Create a silence",
        description="Suppresses notifications of alerts that match all matchers, until its end.",
        request=AlertSilenceCreateSerializer,
    )
    @rest.supports_dry_run
    @idempotent
    def create(self, request: Request) -> Response:
        given = self.validated_body(AlertSilenceCreateSerializer)
        row = alerts.silence_create(**given, actor=acting_user(request), at=timezone.now())
        return Response(self.get_serializer(row).data, status=status.HTTP_201_CREATED)

    @extend_schema(
        summary="Change a silence",
        description="A silence that has expired is refused.",
        request=AlertSilenceChangeSerializer,
    )
    @rest.supports_dry_run
    def partial_update(self, request: Request, uid: str) -> Response:
        row = alerts.silence_change(
            silence=self.get_object(),
            changes=self.validated_body(AlertSilenceChangeSerializer),
            actor=acting_user(request),
            at=timezone.now(),
        )
        return Response(self.get_serializer(row).data)

    @extend_schema(
        summary="Expire a silence",
        description="The silence stays in the list for 90 days. One that has expired does not change.",
    )
    @rest.supports_dry_run
    def destroy(self, request: Request, uid: str) -> Response:
        actor = acting_user(request)
        alerts.silence_end(silence=self.get_object(), actor=actor, at=timezone.now())
        return Response(status=status.HTTP_204_NO_CONTENT)


class AlertReceiverViewSet(FleetOperatorViewSet[AlertReceiver]):
    tag = "alerts"
    summaries = {"list": "Alert receivers", "retrieve": "Get an alert receiver"}
    serializer_class = AlertReceiverSerializer
    visible = staticmethod(selectors.receivers_visible)

    @extend_schema(
        summary="Create an alert receiver",
        description="URL and secret are stored encrypted and never returned.",
        request=AlertReceiverCreateSerializer,
    )
    @rest.supports_dry_run
    @idempotent
    def create(self, request: Request) -> Response:
        given = self.validated_body(AlertReceiverCreateSerializer)
        receiver_request = AlertReceiverRequest(
            **{
                **given,
                "kind": ReceiverKind(given["kind"]),
                "addresses": tuple(given.get("addresses", ())),
            }
        )
        row = alerts.alert_receiver_create(request=receiver_request, actor=acting_user(request))
        return Response(self.get_serializer(row).data, status=status.HTTP_201_CREATED)

    @extend_schema(
        summary="Pause or resume an alert receiver", request=AlertReceiverChangeSerializer
    )
    @rest.supports_dry_run
    def partial_update(self, request: Request, uid: str) -> Response:
        row, actor = self.get_object(), acting_user(request)
        given = self.validated_body(AlertReceiverChangeSerializer)
        alerts.alert_receiver_switch(receiver=row, actor=actor, **given)
        return Response(self.get_serializer(row).data)

    @extend_schema(summary="Delete an alert receiver")
    @rest.supports_dry_run
    def destroy(self, request: Request, uid: str) -> Response:
        alerts.alert_receiver_delete(receiver=self.get_object(), actor=acting_user(request))
        return Response(status=status.HTTP_204_NO_CONTENT)

    @post_action(
        "Send a test alert to a receiver",
        "Sends one test alert without retries. The result is shown by the receiver.",
        responses={202: AlertDeliverySerializer},
    )
    def test(self, request: Request, uid: str) -> Response:
        delivery = alerts.alert_receiver_test(
            receiver=self.get_object(), actor=acting_user(request), at=timezone.now()
        )
        body = AlertDeliverySerializer(delivery).data
        return Response(body, status=status.HTTP_202_ACCEPTED)


class AlertRouteViewSet(FleetOperatorViewSet[AlertRoute]):
    tag = "alerts"
    summaries = {"list": "Alert routes", "retrieve": "Get an alert route"}
    serializer_class = AlertRouteSerializer
    visible = staticmethod(selectors.alert_routes_visible)

    @extend_schema(summary="Create an alert route", request=AlertRouteWriteSerializer)
    @rest.supports_dry_run
    @idempotent
    def create(self, request: Request) -> Response:
        row = alerts.alert_route_create(request=self._route_request(), actor=acting_user(request))
        return Response(self.get_serializer(row).data, status=status.HTTP_201_CREATED)

    @extend_schema(summary="Change an alert route", request=AlertRouteWriteSerializer)
    @rest.supports_dry_run
    def update(self, request: Request, uid: str) -> Response:
        row, actor = self.get_object(), acting_user(request)
        alerts.alert_route_change(route=row, request=self._route_request(), actor=actor)
        return Response(self.get_serializer(self.get_object()).data)

    @extend_schema(summary="Delete an alert route")
    @rest.supports_dry_run
    def destroy(self, request: Request, uid: str) -> Response:
        alerts.alert_route_delete(route=self.get_object(), actor=acting_user(request))
        return Response(status=status.HTTP_204_NO_CONTENT)

    def _route_request(self) -> AlertRouteRequest:
        given = self.validated_body(AlertRouteWriteSerializer)
        return AlertRouteRequest(
            **{
                **given,
                "severity": AlertSeverity(given["severity"]),
                "matchers": tuple(given["matchers"]),
            }
        )
