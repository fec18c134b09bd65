"""REST of alerts, rules, silences, receivers and routes, for operators of the fleet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_field, extend_schema_view
from rest_framework import mixins, serializers, status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.api.authentication import acting_user
from apps.accounts.api.idempotency import idempotent
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
    AlertSilenceRequest,
)
from controlplane.domain.alerts.chat_messages import ReceiverKind
from controlplane.domain.alerts.deliveries import DeliveryState
from controlplane.domain.alerts.rules import (
    MOST_MATCHERS,
    AlertSeverity,
)
from controlplane.domain.common.permissions import Scope
from controlplane.web.rest import (
    ListFilters,
    M,
    ObjectReference,
    ResourceViewSet,
    StrictSerializer,
    VisibleUidField,
    supports_dry_run,
)

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


class AlertFilters(ListFilters):
    severity = serializers.ChoiceField(choices=[*AlertSeverity], required=False)
    rule = serializers.CharField(max_length=60, required=False, help_text="Name of the object.")
    firing = serializers.BooleanField(
        required=False, help_text="Return only firing groups, or only resolved ones."
    )
    lookups = {"severity": "severity", "rule": "rule_name"}

    @classmethod
    def apply(cls, rows: QuerySet[M, Any], given: Mapping[str, Any]) -> QuerySet[M, Any]:
        rows = super().apply(rows, given)
        return rows.filter(ended_at__isnull=given["firing"]) if "firing" in given else rows


class AlertSilenceSerializer(serializers.ModelSerializer[AlertSilence]):
    matchers = serializers.ListField(child=serializers.CharField())

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


class AlertSilenceCreateSerializer(StrictSerializer[Any]):
    name = serializers.CharField(
        max_length=80, help_text="Unique among the silences that have not expired."
    )
    matchers = matchers_field(min_length=1, help_text=MATCHERS)
    ends_at = serializers.DateTimeField(help_text="Within 30 days from now.")
    reason = serializers.CharField(max_length=300)


class AlertSilenceChangeSerializer(StrictSerializer[Any]):
    matchers = matchers_field(min_length=1, required=False, help_text=MATCHERS)
    ends_at = serializers.DateTimeField(required=False, help_text="Within 30 days from now.")
    reason = serializers.CharField(max_length=300, required=False)


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
            "created_by_name",
            "created_at",
            "tried_at",
            "last_error",
        )


class AlertReceiverCreateSerializer(StrictSerializer[Any]):
    name = serializers.CharField(max_length=80)
    kind = serializers.ChoiceField(choices=[*ReceiverKind])
    url = serializers.CharField(max_length=2000, required=False, help_text="Write-only.")
    secret = serializers.CharField(max_length=200, required=False, help_text="Write-only.")
    addresses = serializers.ListField(
        child=serializers.CharField(max_length=254), max_length=20, required=False
    )
    language = serializers.ChoiceField(
        choices=settings.LANGUAGES, required=False, default=settings.LANGUAGE_CODE
    )
    active = serializers.BooleanField(required=False, help_text="False: paused. Default: true.")


class AlertReceiverChangeSerializer(StrictSerializer[Any]):
    active = serializers.BooleanField(help_text="False: paused.")


class AlertDeliverySerializer(serializers.ModelSerializer[AlertDelivery]):
    receiver = ObjectReference()
    state = serializers.ChoiceField(choices=[*DeliveryState])

    class Meta:
        model = AlertDelivery
        fields = ("uid", "receiver", "state", "tries", "next_try_at", "ended_at", "status", "error")


class AlertRouteSerializer(serializers.ModelSerializer[AlertRoute]):
    matchers = serializers.ListField(child=serializers.CharField())
    receivers = ObjectReference(many=True)

    class Meta:
        model = AlertRoute
        fields = ("uid", "name", "severity", "matchers", "receivers", "enabled")


class AlertRouteWriteSerializer(StrictSerializer[Any]):
    name = serializers.CharField(max_length=80)
    severity = serializers.ChoiceField(choices=[*AlertSeverity])
    matchers = matchers_field(required=False, default=list, help_text=MATCHERS)
    receivers = VisibleUidField(
        visible=selectors.receivers_visible, many=True, help_text="Uids of receivers; at least one."
    )
    enabled = serializers.BooleanField(required=False, default=True)


TAGS = ["alerts"]


class FleetOperatorViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, ResourceViewSet[M]):
    token_scope = Scope.ADMIN

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """:raises PermissionRefused: unless the caller operates the fleet."""
        super().initial(request, *args, **kwargs)
        require_fleet_operator(request.user)


@extend_schema_view(
    list=extend_schema(summary="Alert groups", tags=TAGS, parameters=[AlertFilters]),
    retrieve=extend_schema(
        summary="Get an alert group with its alerts",
        tags=TAGS,
        responses=AlertGroupDetailSerializer,
    ),
)
class AlertViewSet(FleetOperatorViewSet[AlertGroup]):
    """Alerts of one rule that belong together, from the first that fires until none does."""

    queries = {"list": AlertFilters}
    serializer_class = AlertGroupSerializer

    def get_queryset(self) -> QuerySet[AlertGroup]:
        return selectors.alert_groups_visible(self.request.user)

    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return Response(AlertGroupDetailSerializer(self.get_object()).data)


@extend_schema_view(
    list=extend_schema(summary="Silences, newest first", tags=TAGS),
    retrieve=extend_schema(summary="A silence", tags=TAGS),
)
class AlertSilenceViewSet(FleetOperatorViewSet[AlertSilence]):
    serializer_class = AlertSilenceSerializer

    def get_queryset(self) -> QuerySet[AlertSilence]:
        return selectors.silences_visible(self.request.user)

    @extend_schema(
        summary="Create a silence",
        description="Suppresses notifications of alerts that match all matchers, until its end.",
        tags=TAGS,
        request=AlertSilenceCreateSerializer,
        responses={201: AlertSilenceSerializer},
    )
    @supports_dry_run
    @idempotent
    def create(self, request: Request) -> Response:
        given = self.validated_body(AlertSilenceCreateSerializer)
        row = alerts.silence_create(
            request=AlertSilenceRequest(**given), actor=acting_user(request), at=timezone.now()
        )
        return Response(self.get_serializer(row).data, status=status.HTTP_201_CREATED)

    @extend_schema(
        summary="Change a silence",
        description="A silence that has expired is refused.",
        tags=TAGS,
        request=AlertSilenceChangeSerializer,
        responses=AlertSilenceSerializer,
    )
    @supports_dry_run
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
        tags=TAGS,
        responses={204: None},
    )
    @supports_dry_run
    def destroy(self, request: Request, uid: str) -> Response:
        actor = acting_user(request)
        alerts.silence_end(silence=self.get_object(), actor=actor, at=timezone.now())
        return Response(status=status.HTTP_204_NO_CONTENT)


@extend_schema_view(
    list=extend_schema(summary="Alert receivers", tags=TAGS),
    retrieve=extend_schema(summary="Get an alert receiver", tags=TAGS),
)
class AlertReceiverViewSet(FleetOperatorViewSet[AlertReceiver]):
    serializer_class = AlertReceiverSerializer

    def get_queryset(self) -> QuerySet[AlertReceiver]:
        return selectors.receivers_visible(self.request.user)

    @extend_schema(
        summary="Create an alert receiver",
        description="URL and secret are stored encrypted and never returned.",
        tags=TAGS,
        request=AlertReceiverCreateSerializer,
        responses={201: AlertReceiverSerializer},
    )
    @supports_dry_run
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
        summary="Pause or resume an alert receiver",
        tags=TAGS,
        request=AlertReceiverChangeSerializer,
        responses=AlertReceiverSerializer,
    )
    @supports_dry_run
    def partial_update(self, request: Request, uid: str) -> Response:
        row, actor = self.get_object(), acting_user(request)
        given = self.validated_body(AlertReceiverChangeSerializer)
        alerts.alert_receiver_switch(receiver=row, actor=actor, **given)
        return Response(self.get_serializer(row).data)

    @extend_schema(summary="Delete an alert receiver", tags=TAGS, responses={204: None})
    @supports_dry_run
    def destroy(self, request: Request, uid: str) -> Response:
        alerts.alert_receiver_delete(receiver=self.get_object(), actor=acting_user(request))
        return Response(status=status.HTTP_204_NO_CONTENT)

    @extend_schema(
        summary="Send a test alert to a receiver",
        description="Sends one test alert without retries. The result is shown by the receiver.",
        tags=TAGS,
        request=None,
        responses={202: AlertDeliverySerializer},
    )
    @idempotent
    @action(detail=True, methods=["post"])
    def test(self, request: Request, uid: str) -> Response:
        delivery = alerts.alert_receiver_test(
            receiver=self.get_object(), actor=acting_user(request), at=timezone.now()
        )
        body = AlertDeliverySerializer(delivery).data
        return Response(body, status=status.HTTP_202_ACCEPTED)


@extend_schema_view(
    list=extend_schema(summary="Alert routes", tags=TAGS),
    retrieve=extend_schema(summary="Get an alert route", tags=TAGS),
)
class AlertRouteViewSet(FleetOperatorViewSet[AlertRoute]):
    serializer_class = AlertRouteSerializer

    def get_queryset(self) -> QuerySet[AlertRoute]:
        return selectors.alert_routes_visible(self.request.user)

    @extend_schema(
        summary="Create an alert route",
        tags=TAGS,
        request=AlertRouteWriteSerializer,
        responses={201: AlertRouteSerializer},
    )
    @supports_dry_run
    @idempotent
    def create(self, request: Request) -> Response:
        row = alerts.alert_route_create(request=self._route_request(), actor=acting_user(request))
        return Response(self.get_serializer(row).data, status=status.HTTP_201_CREATED)

    @extend_schema(
        summary="Change an alert route",
        tags=TAGS,
        request=AlertRouteWriteSerializer,
        responses=AlertRouteSerializer,
    )
    @supports_dry_run
    def update(self, request: Request, uid: str) -> Response:
        row, actor = self.get_object(), acting_user(request)
        alerts.alert_route_change(route=row, request=self._route_request(), actor=actor)
        return Response(self.get_serializer(self.get_object()).data)

    @extend_schema(summary="Delete an alert route", tags=TAGS, responses={204: None})
    @supports_dry_run
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
