"""REST of the system status."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.console.selectors.system_status import (
    COMPONENT_FACTS,
    ComponentCondition,
    ComponentKind,
    ProductComponent,
    ProductStatus,
    product_status,
    require_permission_to_view_product_status,
)
from apps.monitoring.selectors.self_monitoring import ControllerStatus
from controlplane.domain.common.permissions import Scope
from controlplane.domain.health.controllers import ControllerHealth
from controlplane.web.rest import QuerySerializer
from controlplane.web.type_schemas import DeclaredByKindField

KINDS = [(one.value, one.value) for one in ComponentKind]
CONDITIONS = [(one.value, one.value) for one in ComponentCondition]
HEALTHS = [(one.value, one.value) for one in ControllerHealth]


class ProductComponentSerializer(serializers.Serializer[ProductComponent]):
    """A part of the product."""

    kind = serializers.ChoiceField(choices=KINDS)
    name = serializers.CharField(help_text="Name of the instance if there are several; else empty.")
    condition = serializers.ChoiceField(choices=CONDITIONS)
    facts = DeclaredByKindField(
        declared=lambda: COMPONENT_FACTS, help_text="Measured facts of components of the kind."
    )


class ControllerSerializer(serializers.Serializer[ControllerStatus]):
    """A controller and the record of its runs."""

    name = serializers.CharField()
    health = serializers.ChoiceField(choices=HEALTHS)
    interval_seconds = serializers.SerializerMethodField()
    lag_seconds = serializers.SerializerMethodField(
        help_text="Seconds since the last successful run; null if it has never run."
    )
    last_seconds = serializers.FloatField(allow_null=True, help_text="Duration of the last run.")
    handled = serializers.IntegerField(
        allow_null=True,
        help_text="What the last successful run handled; null if it does not report a number.",
    )
    runs = serializers.IntegerField()
    failed_runs = serializers.IntegerField()
    failures = serializers.IntegerField(help_text="Failed runs since the last successful one.")
    error = serializers.CharField(help_text="Error of the last failed run.")
    failed_at = serializers.DateTimeField(allow_null=True)

    def get_interval_seconds(self, controller: ControllerStatus) -> float:
        return controller.interval.total_seconds()

    @extend_schema_field(serializers.FloatField(allow_null=True))
    def get_lag_seconds(self, controller: ControllerStatus) -> float | None:
        return None if controller.lag is None else controller.lag.total_seconds()


class StatusSerializer(serializers.Serializer[ProductStatus]):
    """State of Ninefold itself; the condition is that of the worst component."""

    at = serializers.DateTimeField()
    condition = serializers.ChoiceField(choices=CONDITIONS)
    components = ProductComponentSerializer(many=True)
    controllers = ControllerSerializer(many=True)
    versions: Any = serializers.DictField(child=serializers.CharField())


class StatusView(APIView):
    """For operators and administrators."""

    token_scope = Scope.READ

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """:raises PermissionRefused: unless the caller may view the status of the product."""
        super().initial(request, *args, **kwargs)
        require_permission_to_view_product_status(request.user)

    @extend_schema(
        summary="System status",
        tags=["operations"],
        operation_id="status_retrieve",
        responses=StatusSerializer,
    )
    def get(self, request: Request) -> Response:
        QuerySerializer.read(request)
        return Response(StatusSerializer(product_status()).data)
