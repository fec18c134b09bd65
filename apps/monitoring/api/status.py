"""How the product itself does, for programs."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.monitoring.selectors.components import Component, Condition, Kind
from apps.monitoring.selectors.loops import Loop
from apps.monitoring.selectors.product import ProductStatus, product_status, require_product
from controlplane.domain.common.permissions import Scope
from controlplane.domain.loops import LoopHealth
from controlplane.web.rest import Query

KINDS = [(one.value, one.value) for one in Kind]
CONDITIONS = [(one.value, one.value) for one in Condition]
HEALTHS = [(one.value, one.value) for one in LoopHealth]


class ComponentSerializer(serializers.Serializer[Component]):
    """A part of the product."""

    kind = serializers.ChoiceField(choices=KINDS)
    name = serializers.CharField(help_text="Of one among several of its kind, else empty.")
    condition = serializers.ChoiceField(choices=CONDITIONS)
    facts = serializers.DictField(help_text="What was found out about it, by name.")


class LoopSerializer(serializers.Serializer[Loop]):
    """A loop, and what its turns left behind."""

    name = serializers.CharField()
    health = serializers.ChoiceField(choices=HEALTHS)
    interval_seconds = serializers.SerializerMethodField()
    lag_seconds = serializers.SerializerMethodField(
        help_text="Since the last good turn; null if it never turned."
    )
    last_seconds = serializers.FloatField(
        allow_null=True, help_text="How long the newest turn took."
    )
    handled = serializers.IntegerField(
        allow_null=True, help_text="What the last good turn dealt with; null where it does not say."
    )
    turns = serializers.IntegerField()
    failed_turns = serializers.IntegerField()
    failures = serializers.IntegerField(help_text="Bad turns since the last good one.")
    error = serializers.CharField(help_text="Of the last bad turn, however long ago.")
    failed_at = serializers.DateTimeField(allow_null=True)

    def get_interval_seconds(self, loop: Loop) -> float:
        return loop.interval.total_seconds()

    @extend_schema_field(serializers.FloatField(allow_null=True))
    def get_lag_seconds(self, loop: Loop) -> float | None:
        return None if loop.lag is None else loop.lag.total_seconds()


class StatusSerializer(serializers.Serializer[ProductStatus]):
    """How the product itself does; the condition is the worst of all."""

    at = serializers.DateTimeField()
    condition = serializers.ChoiceField(choices=CONDITIONS)
    components = ComponentSerializer(many=True)
    loops = LoopSerializer(many=True)
    versions: Any = serializers.DictField(child=serializers.CharField())


class StatusView(APIView):
    """For operators and administrators."""

    token_scope = Scope.READ

    @extend_schema(
        summary="How Ninefold itself does",
        tags=["operations"],
        operation_id="status_retrieve",
        responses=StatusSerializer,
    )
    def get(self, request: Request) -> Response:
        Query.read(request)
        require_product(request.user)
        return Response(StatusSerializer(product_status()).data)
