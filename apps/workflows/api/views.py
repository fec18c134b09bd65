from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import mixins, status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.api.authentication import acting_user, require_token_scope
from apps.accounts.api.idempotency import idempotent
from apps.accounts.models import Team
from apps.workflows import selectors, services
from apps.workflows.api import serializers
from apps.workflows.models import Pipeline
from controlplane.domain.common.permissions import Scope
from controlplane.domain.pipelines import StepKind
from controlplane.web.rest import (
    ResourceViewSet,
    supports_dry_run,
)


@extend_schema_view(
    list=extend_schema(
        summary="Pipelines", tags=["pipelines"], parameters=[serializers.PipelineFilters]
    ),
    retrieve=extend_schema(
        summary="A pipeline with its steps, outputs and metrics",
        tags=["pipelines"],
    ),
)
class PipelineViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, ResourceViewSet[Pipeline]):
    token_scope = Scope.JOBS
    queries = {"list": serializers.PipelineFilters}
    serializer_class = serializers.PipelineSerializer

    def get_queryset(self) -> QuerySet[Pipeline]:
        return selectors.pipelines_visible(self.request.user)

    def _require_step_permissions(self, kinds: Sequence[StepKind], *, team: Team) -> None:
        """A step that deploys needs what deploying needs, of the person and of the token."""
        services.steps_require_permissions(self.request.user, kinds, team=team)
        if StepKind.DEPLOY in kinds:
            require_token_scope(self.request, Scope.SERVING)

    def _runnable_pipeline(self) -> Pipeline:
        """The pipeline of this address, if the caller may run what it runs."""
        pipeline = self.get_object()
        self._require_step_permissions(services.step_kinds(pipeline), team=pipeline.team)
        return pipeline

    def _pipeline_response(self, uid: str) -> Response:
        return Response(self.get_serializer(self.get_queryset().get(uid=uid)).data)

    @extend_schema(
        summary="Submit a pipeline",
        description=(
            "Each step uses the latest version that an earlier step created, or model_version. "
            "Validates the request and returns all errors together (422)."
        ),
        tags=["pipelines"],
        request=serializers.PipelineSubmitSerializer,
        responses={201: serializers.PipelineSerializer},
    )
    @supports_dry_run
    @idempotent
    def create(self, request: Request) -> Response:
        given = self.validated_body(serializers.PipelineSubmitSerializer)
        self._require_step_permissions(given["request"].kinds, team=given["team"])
        pipeline = services.pipeline_submit(actor=acting_user(request), **given)
        response = self._pipeline_response(pipeline.uid)
        response.status_code = status.HTTP_201_CREATED
        return response

    @extend_schema(
        summary="Check a pipeline without submitting it",
        tags=["pipelines"],
        request=serializers.PipelineSubmitSerializer,
        responses=serializers.PipelineCheckSerializer,
    )
    @action(detail=False, methods=["post"])
    def check(self, request: Request) -> Response:
        given = self.validated_body(serializers.PipelineSubmitSerializer)
        findings = services.pipeline_check(**given)
        return Response(
            {"accepted": not findings, "findings": [asdict(finding) for finding in findings]}
        )

    @extend_schema(
        summary="Cancel a pipeline and its running step",
        tags=["pipelines"],
        request=None,
        responses=serializers.PipelineSerializer,
    )
    @idempotent
    @action(detail=True, methods=["post"])
    def cancel(self, request: Request, uid: str) -> Response:
        services.pipeline_cancel(
            pipeline=self._runnable_pipeline(), actor=acting_user(request), at=timezone.now()
        )
        return self._pipeline_response(uid)

    @extend_schema(
        summary="Retry a pipeline from its failed or cancelled step",
        tags=["pipelines"],
        request=None,
        responses=serializers.PipelineSerializer,
    )
    @idempotent
    @action(detail=True, methods=["post"])
    def retry(self, request: Request, uid: str) -> Response:
        services.pipeline_retry(
            pipeline=self._runnable_pipeline(), actor=acting_user(request), at=timezone.now()
        )
        return self._pipeline_response(uid)

    @extend_schema(
        summary="Approve a pipeline that failed a gate",
        tags=["pipelines"],
        request=serializers.GateOverrideSerializer,
        responses=serializers.PipelineSerializer,
    )
    @idempotent
    @action(detail=True, methods=["post"], url_path="gate-override")
    def override_gate(self, request: Request, uid: str) -> Response:
        given = self.validated_body(serializers.GateOverrideSerializer)
        services.gate_override(
            pipeline=self._runnable_pipeline(),
            actor=acting_user(request),
            reason=given["reason"],
            at=timezone.now(),
        )
        return self._pipeline_response(uid)

    @extend_schema(
        summary="State transitions of a pipeline and its steps, latest first",
        tags=["pipelines"],
        responses=serializers.PipelineEventSerializer(many=True),
    )
    @action(detail=True, pagination_class=None)
    def events(self, request: Request, uid: str) -> Response:
        events = selectors.pipeline_events(self.get_object())
        return Response(serializers.PipelineEventSerializer(events, many=True).data)
