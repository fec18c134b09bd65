"""Alerts for programs: what fires, the rules, the silences, and who is told. For operators of the fleet."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import mixins, status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.api.authentication import acting_user
from apps.accounts.api.idempotency import idempotent
from apps.fleet.selectors import require_operator
from apps.monitoring.api import alerts_serializers as serializers
from apps.monitoring.models import (
    AlertGroup,
    AlertReceiver,
    AlertRoute,
    AlertRule,
    AlertSilence,
)
from apps.monitoring.selectors import alerts as selectors
from apps.monitoring.selectors.alerts_trials import trial_of
from apps.monitoring.services import alerts, alerts_receivers
from apps.monitoring.services.alerts_receivers import ReceiverAsk, RouteAsk
from controlplane.domain.alerts.messages import ReceiverKind
from controlplane.domain.alerts.rules import Severity, rule_read
from controlplane.domain.common.permissions import Scope
from controlplane.web.rest import M, ResourceViewSet

TAGS = ["alerts"]


class OperatorViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, ResourceViewSet[M]):
    token_scope = Scope.ADMIN

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """:raises PermissionRefused: unless the caller operates the fleet."""
        super().initial(request, *args, **kwargs)
        require_operator(request.user)


@extend_schema_view(
    list=extend_schema(
        summary="Episodes of alerts", tags=TAGS, parameters=[serializers.AlertFilters]
    ),
    retrieve=extend_schema(
        summary="An episode with its alerts",
        tags=TAGS,
        responses=serializers.AlertGroupDetailSerializer,
    ),
)
class AlertViewSet(OperatorViewSet[AlertGroup]):
    """Alerts of one rule that belong together, from the first that fires until none does."""

    queries = {"list": serializers.AlertFilters}
    serializer_class = serializers.AlertGroupSerializer

    def get_queryset(self) -> QuerySet[AlertGroup]:
        return selectors.groups_visible(self.request.user)

    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return Response(serializers.AlertGroupDetailSerializer(self.get_object()).data)


@extend_schema_view(
    list=extend_schema(summary="Alert rules", tags=TAGS),
    retrieve=extend_schema(summary="An alert rule", tags=TAGS),
)
class AlertRuleViewSet(OperatorViewSet[AlertRule]):
    serializer_class = serializers.AlertRuleSerializer

    def get_queryset(self) -> QuerySet[AlertRule]:
        return selectors.rules_visible(self.request.user)

    @extend_schema(
        summary="Make an alert rule",
        tags=TAGS,
        request=serializers.AlertRuleCreateSerializer,
        responses={201: serializers.AlertRuleSerializer},
    )
    @idempotent
    def create(self, request: Request) -> Response:
        document = self.checked(serializers.AlertRuleCreateSerializer)
        row = alerts.rule_create(document=document, actor=acting_user(request), at=timezone.now())
        return Response(self.get_serializer(row).data, status=status.HTTP_201_CREATED)

    @extend_schema(
        summary="Change an alert rule, or switch it on or off",
        tags=TAGS,
        request=serializers.AlertRuleChangeSerializer,
        responses=serializers.AlertRuleSerializer,
    )
    def partial_update(self, request: Request, uid: str) -> Response:
        document = self.checked(serializers.AlertRuleChangeSerializer)
        row, actor = self.get_object(), acting_user(request)
        alerts.rule_change(rule=row, document=document, actor=actor, at=timezone.now())
        return Response(self.get_serializer(self.get_object()).data)

    @extend_schema(
        summary="Delete an alert rule",
        description="What it fired is told of as over. Rules that the product comes with can only be "
        "switched off.",
        tags=TAGS,
        responses={204: None},
    )
    def destroy(self, request: Request, uid: str) -> Response:
        actor = acting_user(request)
        alerts.rule_delete(rule=self.get_object(), actor=actor, at=timezone.now())
        return Response(status=status.HTTP_204_NO_CONTENT)

    @extend_schema(
        summary="Try an alert rule",
        description="What it would say now, and how often it would have fired in the last 24 hours. "
        "Nothing is kept.",
        tags=TAGS,
        request=serializers.AlertRuleCreateSerializer,
        responses=serializers.AlertTrialSerializer,
    )
    @action(detail=False, methods=["post"])
    def trial(self, request: Request) -> Response:
        rule = rule_read(self.checked(serializers.AlertRuleCreateSerializer))
        return Response(serializers.AlertTrialSerializer(trial_of(rule, at=timezone.now())).data)


@extend_schema_view(
    list=extend_schema(summary="Silences, the newest first", tags=TAGS),
    retrieve=extend_schema(summary="A silence", tags=TAGS),
)
class AlertSilenceViewSet(OperatorViewSet[AlertSilence]):
    serializer_class = serializers.AlertSilenceSerializer

    def get_queryset(self) -> QuerySet[AlertSilence]:
        return selectors.silences_visible(self.request.user)

    @extend_schema(
        summary="Begin a silence",
        description="Nobody is told of what all its conditions fit until it ends by itself.",
        tags=TAGS,
        request=serializers.AlertSilenceCreateSerializer,
        responses={201: serializers.AlertSilenceSerializer},
    )
    @idempotent
    def create(self, request: Request) -> Response:
        given = self.checked(serializers.AlertSilenceCreateSerializer)
        row = alerts.silence_begin(actor=acting_user(request), at=timezone.now(), **given)
        return Response(self.get_serializer(row).data, status=status.HTTP_201_CREATED)

    @extend_schema(summary="End a silence before its time", tags=TAGS, responses={204: None})
    def destroy(self, request: Request, uid: str) -> Response:
        actor = acting_user(request)
        alerts.silence_end(silence=self.get_object(), actor=actor, at=timezone.now())
        return Response(status=status.HTTP_204_NO_CONTENT)


@extend_schema_view(
    list=extend_schema(summary="Receivers of alerts", tags=TAGS),
    retrieve=extend_schema(summary="A receiver of alerts", tags=TAGS),
)
class AlertReceiverViewSet(OperatorViewSet[AlertReceiver]):
    serializer_class = serializers.AlertReceiverSerializer

    def get_queryset(self) -> QuerySet[AlertReceiver]:
        return selectors.receivers_visible(self.request.user)

    @extend_schema(
        summary="Make a receiver of alerts",
        description="Its address and secret are kept encrypted and not shown again.",
        tags=TAGS,
        request=serializers.AlertReceiverCreateSerializer,
        responses={201: serializers.AlertReceiverSerializer},
    )
    @idempotent
    def create(self, request: Request) -> Response:
        given = self.checked(serializers.AlertReceiverCreateSerializer)
        ask = ReceiverAsk(
            **{
                **given,
                "kind": ReceiverKind(given["kind"]),
                "addresses": tuple(given.get("addresses", ())),
            }
        )
        row = alerts_receivers.receiver_create(ask=ask, actor=acting_user(request))
        return Response(self.get_serializer(row).data, status=status.HTTP_201_CREATED)

    @extend_schema(
        summary="Pause or resume a receiver of alerts",
        tags=TAGS,
        request=serializers.AlertReceiverChangeSerializer,
        responses=serializers.AlertReceiverSerializer,
    )
    def partial_update(self, request: Request, uid: str) -> Response:
        row, actor = self.get_object(), acting_user(request)
        given = self.checked(serializers.AlertReceiverChangeSerializer)
        alerts_receivers.receiver_switch(receiver=row, actor=actor, **given)
        return Response(self.get_serializer(row).data)

    @extend_schema(summary="Delete a receiver of alerts", tags=TAGS, responses={204: None})
    def destroy(self, request: Request, uid: str) -> Response:
        alerts_receivers.receiver_delete(receiver=self.get_object(), actor=acting_user(request))
        return Response(status=status.HTTP_204_NO_CONTENT)

    @extend_schema(
        summary="Send a test to a receiver of alerts",
        description="It is tried once; look at the receiver to see how it went.",
        tags=TAGS,
        request=None,
        responses={202: serializers.AlertDeliverySerializer},
    )
    @idempotent
    @action(detail=True, methods=["post"])
    def test(self, request: Request, uid: str) -> Response:
        delivery = alerts_receivers.receiver_test(
            receiver=self.get_object(), actor=acting_user(request), at=timezone.now()
        )
        body = serializers.AlertDeliverySerializer(delivery).data
        return Response(body, status=status.HTTP_202_ACCEPTED)


@extend_schema_view(
    list=extend_schema(summary="Routes of alerts", tags=TAGS),
    retrieve=extend_schema(summary="A route of alerts", tags=TAGS),
)
class AlertRouteViewSet(OperatorViewSet[AlertRoute]):
    serializer_class = serializers.AlertRouteSerializer

    def get_queryset(self) -> QuerySet[AlertRoute]:
        return selectors.routes_visible(self.request.user)

    @extend_schema(
        summary="Make a route of alerts",
        tags=TAGS,
        request=serializers.AlertRouteWriteSerializer,
        responses={201: serializers.AlertRouteSerializer},
    )
    @idempotent
    def create(self, request: Request) -> Response:
        row = alerts_receivers.route_create(ask=self._ask(), actor=acting_user(request))
        return Response(self.get_serializer(row).data, status=status.HTTP_201_CREATED)

    @extend_schema(
        summary="Change a route of alerts",
        tags=TAGS,
        request=serializers.AlertRouteWriteSerializer,
        responses=serializers.AlertRouteSerializer,
    )
    def update(self, request: Request, uid: str) -> Response:
        row, actor = self.get_object(), acting_user(request)
        alerts_receivers.route_change(route=row, ask=self._ask(), actor=actor)
        return Response(self.get_serializer(self.get_object()).data)

    @extend_schema(summary="Delete a route of alerts", tags=TAGS, responses={204: None})
    def destroy(self, request: Request, uid: str) -> Response:
        alerts_receivers.route_delete(route=self.get_object(), actor=acting_user(request))
        return Response(status=status.HTTP_204_NO_CONTENT)

    def _ask(self) -> RouteAsk:
        given = self.checked(serializers.AlertRouteWriteSerializer)
        return RouteAsk(
            **{
                **given,
                "severity": Severity(given["severity"]),
                "matchers": tuple(given["matchers"]),
            }
        )
