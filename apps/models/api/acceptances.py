"""Accepting and rejecting quantized versions by REST."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts import selectors as accounts
from apps.accounts.api.authentication import acting_user
from apps.accounts.api.idempotency import idempotent
from apps.models.api.serializers import ModelVersionDetailSerializer
from apps.models.models import ModelVersion
from apps.models.services import acceptances
from controlplane.domain.common.permissions import Permission
from controlplane.web.rest import ResourceViewSet, StrictSerializer


class DecisionSerializer(StrictSerializer[Any]):
    reason = serializers.CharField(
        max_length=1000, help_text="Why; it is kept with the version and in the audit."
    )


class AcceptanceActions(ResourceViewSet[ModelVersion]):
    """The two decisions that a person can take about a quantized version."""

    @extend_schema(
        summary="Accept a quantized version although it lost more than its tolerance",
        tags=["models"],
        request=DecisionSerializer,
        responses=ModelVersionDetailSerializer,
    )
    @idempotent
    @action(detail=True, methods=["post"])
    def accept(self, request: Request, uid: str) -> Response:
        return self._decided(request, acceptances.version_accept)

    @extend_schema(
        summary="Reject a quantized version",
        description="No new revision serves it from then on; what serves goes on.",
        tags=["models"],
        request=DecisionSerializer,
        responses=ModelVersionDetailSerializer,
    )
    @idempotent
    @action(detail=True, methods=["post"])
    def reject(self, request: Request, uid: str) -> Response:
        return self._decided(request, acceptances.version_reject)

    def _decided(self, request: Request, decide: acceptances.Decision) -> Response:
        version = self.get_object()
        accounts.require(request.user, Permission.CONTRIBUTE, team=version.line.team)
        given = self.checked(DecisionSerializer)
        decide(version=version, actor=acting_user(request), **given)
        return Response(self.get_serializer(self.get_object()).data)
