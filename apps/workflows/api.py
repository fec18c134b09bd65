"""REST of pipelines: serializers, views and addresses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from django.db.models import QuerySet
from django.urls import include, path, re_path
from django.utils import timezone
from drf_spectacular.utils import (
    OpenApiExample,
    extend_schema,
    extend_schema_field,
    extend_schema_serializer,
)
from rest_framework import serializers, status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.routers import SimpleRouter

from apps.accounts.api.authentication import acting_user, require_token_scope
from apps.accounts.api.idempotency import idempotent, post_action
from apps.accounts.api.serializers import TeamOwnedSerializer
from apps.accounts.models import Team
from apps.jobs.api.serializers import WorkloadFilters
from apps.models import selectors as registry
from apps.quotas.api.queues import queue_reference_field, require_queue_of_team
from apps.serving.selectors.revision_configurations import MAX_REPLICAS
from apps.workflows import selectors, services
from apps.workflows.models import Pipeline, PipelineTransition, Step, StepTransition
from apps.workflows.services import MAX_REASON_LENGTH, PipelineRequest, StepRequest
from controlplane.domain.common.permissions import Scope
from controlplane.domain.pipelines.lifecycle import Gate, GateFailureAction, PipelineState, StepKind
from controlplane.domain.quotas.claims import MOST_CARDS
from controlplane.domain.specs.evaluation import METRICS
from controlplane.ports.engines import EngineTask
from controlplane.web import rest
from controlplane.web.reasons import ReasonSerializerField
from controlplane.web.spec_schemas import EngineSpecField
from controlplane.web.type_schemas import NumbersField

_TASKS = {
    kind.value: EngineTask.SERVE if kind is StepKind.DEPLOY else EngineTask(kind)
    for kind in StepKind
}
_GATE_HELP = f"One of {', '.join(METRICS)} behind evaluate; accepted behind quantize."
_DATASET = "tickets@2"

EXAMPLE = {
    "name": "addresses, the whole way",
    "team": "vision",
    "model_version": "qwen3-8b@3",
    "steps": [
        {
            "kind": "finetune",
            "dataset_version": _DATASET,
            "output_name": "address-parser",
            "spec": {"method": "lora", "epochs": 3},
        },
        {
            "kind": "evaluate",
            "dataset_version": _DATASET,
            "spec": {"metrics": ["exact_match"], "split": "test"},
            "gate": {"metric": "exact_match", "threshold": 0.8, "otherwise": "stop"},
        },
        {
            "kind": "quantize",
            "dataset_version": _DATASET,
            "output_name": "address-parser-w8a8",
            "spec": {"scheme": "w8a8-smoothquant"},
            "gate": {"metric": "accepted", "otherwise": "stop"},
        },
        {"kind": "deploy", "deployment_name": "address-parser", "replicas": 1},
    ],
}


@extend_schema_field(
    {
        "type": "object",
        "properties": {
            "metric": {"type": "string"},
            "threshold": {"type": ["number", "null"]},
            "otherwise": {"type": "string", "enum": [choice.value for choice in GateFailureAction]},
        },
    }
)
class StepGateField(serializers.DictField):
    """The gate behind a step, as ``GateSerializer`` accepts it."""


class StepSerializer(serializers.ModelSerializer[Step]):
    spec = EngineSpecField(
        tasks=_TASKS,
        help_text="Fields of the engine as submitted; the job contains them with all defaults.",
    )
    chips = rest.TextListField()
    dataset_version = rest.ObjectReference(allow_null=True)
    model_version = rest.ObjectReference(
        allow_null=True, help_text="Input model version, once the step has started."
    )
    gate = StepGateField(allow_null=True)
    job = rest.ObjectReference(allow_null=True)
    deployment = rest.ObjectReference(allow_null=True)
    output_version = rest.ObjectReference(
        allow_null=True, help_text="Model version that the step created."
    )
    metrics = NumbersField(help_text="Measured metrics.")

    class Meta:
        model = Step
        fields = (
            "uid",
            "number",
            "kind",
            "state",
            "state_reason",
            "engine",
            "spec",
            "chips",
            "cards",
            "dataset_version",
            "output_name",
            "deployment_name",
            "replicas",
            "model_version",
            "job",
            "deployment",
            "output_version",
            "metrics",
            "gate",
            "gate_passed",
            "gate_verdict",
            "overridden_by",
            "override_reason",
            "began_at",
            "ended_at",
        )


class PipelineSerializer(serializers.ModelSerializer[Pipeline]):
    team = rest.ObjectReference()
    created_by = serializers.CharField(source="created_by.username")
    model_version = rest.ObjectReference(help_text="Input model version of the first step.")
    queue = serializers.CharField(source="queue.name")
    cancel_requested_by = serializers.CharField(
        source="cancel_requested_by.username", allow_null=True, default=None
    )
    steps = StepSerializer(many=True)

    class Meta:
        model = Pipeline
        fields = (
            "uid",
            "name",
            "state",
            "state_reason",
            "team",
            "created_by",
            "created_at",
            "ended_at",
            "model_version",
            "queue",
            "cancel_requested_at",
            "cancel_requested_by",
            "steps",
        )


class PipelineEventSerializer(serializers.Serializer[Any]):
    step = serializers.IntegerField(
        allow_null=True, help_text="Number of the step; null: the pipeline."
    )
    from_state = serializers.CharField()
    event = serializers.CharField()
    to_state = serializers.CharField()
    reason = ReasonSerializerField()
    actor = serializers.CharField()
    at = serializers.DateTimeField()


class PipelineFilters(WorkloadFilters):
    lookups = {
        "state": "state__in",
        "team": "team",
        "created_by": "created_by__username",
        "text": "name__icontains",
    }

    state = serializers.MultipleChoiceField(
        choices=[(state.value, state.value) for state in PipelineState], required=False
    )


class GateSerializer(rest.StrictSerializer[Any]):
    metric = serializers.CharField(max_length=40, help_text=_GATE_HELP)
    threshold = serializers.FloatField(
        required=False,
        allow_null=True,
        help_text="Upper limit for perplexity, lower limit for all other metrics.",
    )
    otherwise = rest.EnumField(
        GateFailureAction,
        default=GateFailureAction.STOP.value,
        help_text="If the gate fails: wait for approval, or end the pipeline.",
    )


class StepSubmitSerializer(rest.StrictSerializer[Any]):
    kind = rest.EnumField(StepKind)
    engine = serializers.CharField(required=False, max_length=40)
    spec = EngineSpecField(
        tasks=_TASKS, required=False, help_text="Fields of the engine; see GET /engines."
    )
    chips = serializers.ListField(
        child=serializers.CharField(max_length=60), required=False, max_length=50
    )
    cards = serializers.IntegerField(required=False, min_value=1, max_value=MOST_CARDS)
    dataset_version = rest.VisibleUidField(
        visible=registry.dataset_versions_visible, required=False
    )
    output_name = serializers.SlugField(
        required=False,
        max_length=80,
        help_text="Name of the model of which the output becomes a version.",
    )
    deployment_name = serializers.SlugField(
        required=False,
        max_length=80,
        help_text="Name of a deployment. An existing deployment gets a new revision.",
    )
    replicas = serializers.IntegerField(
        required=False,
        min_value=1,
        max_value=MAX_REPLICAS,
        help_text="Replicas of a new deployment; an existing one keeps its number.",
    )
    gate = GateSerializer(required=False, allow_null=True)

    def to_request(self, given: dict[str, Any]) -> StepRequest:
        gate = given.get("gate")
        values = {**given, "kind": StepKind(given["kind"])}
        values["gate"] = Gate.from_json({"threshold": None, **gate}) if gate is not None else None
        if "chips" in given:
            values["chips"] = tuple(given["chips"])
        return StepRequest(**values)


@extend_schema_serializer(
    examples=[OpenApiExample("From tuning to serving", value=EXAMPLE, request_only=True)]
)
class PipelineSubmitSerializer(TeamOwnedSerializer):
    name = serializers.CharField(max_length=120)
    model_version = rest.VisibleUidField(visible=registry.model_versions_visible)
    queue = queue_reference_field()
    steps = StepSubmitSerializer(many=True)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        attrs = super().validate(attrs)
        reader = StepSubmitSerializer()
        request = PipelineRequest(
            name=attrs["name"],
            model_version=attrs["model_version"],
            queue=require_queue_of_team(attrs["queue"], team=attrs["team"]),
            steps=tuple(reader.to_request(step) for step in attrs["steps"]),
        )
        return {"team": attrs["team"], "request": request}


class PipelineFindingSerializer(serializers.Serializer[Any]):
    field = serializers.CharField(
        help_text="Field, with the number of the step, for example steps.2.learning_rate."
    )
    message = serializers.CharField()


class PipelineCheckSerializer(serializers.Serializer[Any]):
    accepted = serializers.BooleanField()
    findings = PipelineFindingSerializer(many=True, help_text="All errors.")


class GateOverrideSerializer(rest.StrictSerializer[Any]):
    reason = serializers.CharField(
        max_length=MAX_REASON_LENGTH, help_text="Reason for approval, stored in the audit log."
    )


class PipelineViewSet(rest.CollectionViewSet[Pipeline]):
    tag = "pipelines"
    summaries = {"list": "Pipelines", "retrieve": "A pipeline with its steps, outputs and metrics"}
    token_scope = Scope.JOBS
    queries = {"list": PipelineFilters}
    serializer_class = PipelineSerializer
    visible = staticmethod(selectors.pipelines_visible)

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

    def _apply(
        self, change: Callable[..., object], body: type[rest.StrictSerializer[Any]] | None = None
    ) -> Response:
        """Call the service with the pipeline of this URL and the body, and return the pipeline."""
        pipeline, actor = self._runnable_pipeline(), acting_user(self.request)
        given = self.validated_body(body) if body else {}
        change(pipeline=pipeline, actor=actor, at=timezone.now(), **given)
        return self._pipeline_response(pipeline.uid)

    @extend_schema(
        summary="Submit a pipeline",
        description="Each step uses the latest version that an earlier step created, or model_version. "
        "Validates the request and returns all errors together (422).",
        request=PipelineSubmitSerializer,
    )
    @rest.supports_dry_run
    @idempotent
    def create(self, request: Request) -> Response:
        given = self.validated_body(PipelineSubmitSerializer)
        self._require_step_permissions(given["request"].kinds, team=given["team"])
        pipeline = services.pipeline_submit(actor=acting_user(request), **given)
        response = self._pipeline_response(pipeline.uid)
        response.status_code = status.HTTP_201_CREATED
        return response

    @extend_schema(
        summary="Check a pipeline without submitting it",
        request=PipelineSubmitSerializer,
        responses=PipelineCheckSerializer,
    )
    @action(detail=False, methods=["post"])
    def check(self, request: Request) -> Response:
        given = self.validated_body(PipelineSubmitSerializer)
        findings = services.pipeline_check(**given)
        return Response(
            {"accepted": not findings, "findings": [asdict(finding) for finding in findings]}
        )

    @post_action("Cancel a pipeline and its running step")
    def cancel(self, request: Request, uid: str) -> Response:
        return self._apply(services.pipeline_cancel)

    @post_action("Retry a pipeline from its failed or cancelled step")
    def retry(self, request: Request, uid: str) -> Response:
        return self._apply(services.pipeline_retry)

    @post_action(
        "Approve a pipeline that failed a gate",
        request=GateOverrideSerializer,
        url_path="gate-override",
    )
    def override_gate(self, request: Request, uid: str) -> Response:
        return self._apply(services.gate_override, GateOverrideSerializer)


class PipelineEventViewSet(rest.PartsViewSet[PipelineTransition]):
    tag = "pipelines"
    token_scope = Scope.JOBS
    watch_key = "pk"
    append_only = True
    serializer_class = PipelineEventSerializer

    def visible_wholes(self) -> QuerySet[Pipeline]:
        return selectors.pipelines_visible(self.request.user)

    def watched_rows(self) -> tuple[QuerySet[PipelineTransition], QuerySet[StepTransition]]:
        return selectors.pipeline_transitions(self.visible_wholes().filter(uid=self.whole_uid))

    def get_queryset(self) -> QuerySet[PipelineTransition]:
        """The transitions of the pipeline itself."""
        return self.watched_rows()[0]

    @extend_schema(
        summary="State transitions of a pipeline and its steps, latest first",
        responses=PipelineEventSerializer(many=True),
    )
    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        pipeline = self.visible_wholes().get(uid=self.whole_uid)
        return Response(self.get_serializer(selectors.pipeline_events(pipeline), many=True).data)


router = SimpleRouter(trailing_slash=False)
router.register("pipelines", PipelineViewSet, basename="pipeline")

urlpatterns = [
    re_path(
        f"^pipelines/(?P<uid>{rest.UID})/events$",
        PipelineEventViewSet.as_view({"get": "list"}),
        name="pipeline-events",
    ),
    path("", include(router.urls)),
]
