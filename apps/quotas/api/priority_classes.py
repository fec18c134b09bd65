"""Priority classes by REST."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.api.authentication import acting_user
from apps.accounts.api.idempotency import idempotent
from apps.quotas.models import PriorityClass
from apps.quotas.services.priority_classes import priority_class_delete, priority_class_save
from controlplane.domain.common.permissions import Scope
from controlplane.web import rest


class PriorityClassSerializer(serializers.ModelSerializer[PriorityClass]):
    class Meta:
        model = PriorityClass
        fields = ("uid", "name", "value", "description", "created_at")


class PriorityClassWriteSerializer(rest.StrictSerializer[Any]):
    name = serializers.SlugField(max_length=40)
    value = serializers.IntegerField(
        min_value=-rest.LARGEST_INTEGER,
        max_value=rest.LARGEST_INTEGER,
        help_text="Higher values are scheduled first; values above 0 require the role queue admin.",
    )
    description = serializers.CharField(required=False, allow_blank=True, max_length=500)


class PriorityDeleteQuery(rest.QuerySerializer):
    force = serializers.BooleanField(
        default=False,
        help_text="Delete the class even if workloads use its value; they keep the value.",
    )


class PriorityClassViewSet(rest.CollectionViewSet[PriorityClass]):
    """Names for priorities; work that asks for one by its name keeps the number that it had then."""

    tag = "scheduling"
    summaries = {"list": "Priority classes", "retrieve": "A priority class"}
    token_scope = Scope.ADMIN
    serializer_class = PriorityClassSerializer
    queries = {"destroy": PriorityDeleteQuery}
    visible = staticmethod(lambda _user: PriorityClass.objects.all())

    @extend_schema(
        summary="Create a priority class",
        description="Administrators only.",
        request=PriorityClassWriteSerializer,
    )
    @rest.supports_dry_run
    @idempotent
    def create(self, request: Request) -> Response:
        given = {"description": "", **self.validated_body(PriorityClassWriteSerializer)}
        row = priority_class_save(actor=acting_user(request), **given)
        return Response(self.get_serializer(row).data, status=status.HTTP_201_CREATED)

    @extend_schema(
        summary="Change a priority class",
        description="Administrators only. Existing workloads keep their priority value.",
        request=PriorityClassWriteSerializer,
    )
    @rest.supports_dry_run
    def partial_update(self, request: Request, uid: str) -> Response:
        row = self.get_object()
        given = self.validated_body(PriorityClassWriteSerializer, partial=True)
        current = {"name": row.name, "value": row.value, "description": row.description}
        saved = priority_class_save(
            actor=acting_user(request), existing=row, **{**current, **given}
        )
        return Response(self.get_serializer(saved).data)

    @extend_schema(
        summary="Delete a priority class",
        description="Administrators only. Refused while workloads use its value, unless forced.",
    )
    @rest.supports_dry_run
    def destroy(self, request: Request, uid: str) -> Response:
        priority_class_delete(
            row=self.get_object(), actor=acting_user(request), force=self.query["force"]
        )
        return Response(status=status.HTTP_204_NO_CONTENT)
