"""REST API of memory estimates."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from drf_spectacular.utils import (
    OpenApiExample,
    extend_schema,
    extend_schema_field,
    extend_schema_serializer,
)
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from apps.models import selectors as registry
from apps.models.selectors import sizing
from controlplane.domain.common.permissions import Scope
from controlplane.domain.specs.sizing import TASKS
from controlplane.web.rest import StrictSerializer, StrictView, VisibleUidField
from controlplane.web.spec_schemas import SizingSpecField

_MODELS = ("model_version", "catalog", "config")
#: Fields of a plan; ``cards`` is of one replica or run.
_PLAN = {
    "type": "object",
    "properties": {
        **{
            name: {"type": "integer"}
            for name in ("tensor", "pipeline", "data", "context", "expert", "zero_stage", "cards")
        },
        "sequence": {"type": "boolean"},
    },
    "required": ["tensor", "pipeline", "data", "context", "expert", "zero_stage", "cards"],
}


@extend_schema_serializer(
    examples=[
        OpenApiExample(
            "serve a model of the catalog",
            value={
                "catalog": "qwen2.5-72b-instruct",
                "chip": "nvidia-h800",
                "engine": "vllm",
                "spec": {"task": "serve", "context": 8192, "concurrency": 32},
            },
            request_only=True,
        ),
    ]
)
class SizingRequestSerializer(StrictSerializer[Any]):
    """One of ``model_version``, ``catalog`` and ``config`` says which model."""

    model_version = VisibleUidField(visible=registry.model_versions_visible, required=False)
    catalog = serializers.CharField(
        required=False, max_length=200, help_text="Key of a catalog entry."
    )
    config = serializers.DictField(required=False, help_text="Contents of a config.json.")
    chip = serializers.CharField(max_length=100, help_text="Name or alias of the chip.")
    engine = serializers.CharField(
        required=False,
        max_length=100,
        default="",
        allow_blank=True,
        help_text="Name of the engine; empty: a generic engine with a paged KV cache.",
    )
    spec = SizingSpecField(required=False, default=dict, help_text="Inputs of the calculator.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if sum(name in attrs for name in _MODELS) != 1:
            raise ValidationError({"model_version": [f"give exactly one of {', '.join(_MODELS)}"]})
        return attrs


class MemoryPartSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    bytes = serializers.IntegerField()


class SizingFindingSerializer(serializers.Serializer[Any]):
    field = serializers.CharField()
    message = serializers.CharField()


class SizingSerializer(serializers.Serializer[Any]):
    model = serializers.CharField(source="subject.name")
    parameters = serializers.IntegerField(source="subject.architecture.parameters")
    active_parameters = serializers.IntegerField(source="subject.architecture.active_parameters")
    attention = serializers.CharField(source="subject.architecture.attention")
    chip = serializers.CharField(source="chip.name")
    spec = SizingSpecField(source="request", help_text="Spec with all defaults filled in.")
    task = serializers.ChoiceField(choices=[(task, task) for task in TASKS], source="estimate.task")
    parts = MemoryPartSerializer(
        many=True,
        source="estimate.parts",
        help_text="Parts of the memory of the card with the highest use.",
    )
    not_at_once = serializers.IntegerField(
        source="estimate.not_at_once",
        help_text="Bytes of parts that are not in memory at the same time.",
    )
    total = serializers.IntegerField(
        source="estimate.total", help_text="Peak memory of the card with the highest use, in bytes."
    )
    limit = serializers.IntegerField(
        source="estimate.limit",
        allow_null=True,
        help_text="Usable memory of a card in bytes; null if the chip has no own memory.",
    )
    fits = serializers.BooleanField(source="estimate.fits")
    legal = serializers.BooleanField(
        source="estimate.legal",
        help_text="Whether the configuration is valid, independent of memory.",
    )
    plan = serializers.SerializerMethodField()
    proposed = serializers.BooleanField(
        source="estimate.proposed", help_text="Whether the plan was proposed instead of requested."
    )
    replicas = serializers.IntegerField(source="estimate.replicas")
    cache_bytes_per_token = serializers.FloatField(source="estimate.bytes_per_token")
    largest_context = serializers.IntegerField(source="estimate.largest_context", allow_null=True)
    largest_concurrency = serializers.IntegerField(
        source="estimate.largest_concurrency", allow_null=True
    )
    largest_batch = serializers.IntegerField(source="estimate.largest_batch", allow_null=True)
    findings = SizingFindingSerializer(many=True, source="estimate.findings")

    @extend_schema_field(_PLAN)
    def get_plan(self, sized: sizing.SizingResult) -> dict[str, Any]:
        plan = sized.estimate.plan
        return {**asdict(plan), "cards": plan.cards}


class SizingView(StrictView):
    tag = "models"
    token_scope = Scope.MODELS

    @extend_schema(
        summary="Estimate the memory of a model",
        description="Returns the parts of the peak memory per card, the requested or a proposed parallel "
        "plan, and the largest context, concurrency or batch size that fits. Invalid fields are refused (422); a "
        "configuration that does not fit is returned with findings.",
        request=SizingRequestSerializer,
        responses=SizingSerializer,
    )
    def post(self, request: Request) -> Response:
        given = self.validated_body(SizingRequestSerializer)
        sized = sizing.estimate_memory(
            _sizing_subject(given), given["spec"], chip=given["chip"], engine=given["engine"]
        )
        return Response(SizingSerializer(sized).data)


def _sizing_subject(given: dict[str, Any]) -> sizing.SizingSubject:
    """:raises SizingRefused: if the model's architecture is unknown."""
    if "model_version" in given:
        return sizing.sizing_subject_of_version(given["model_version"])
    if "catalog" in given:
        return sizing.sizing_subject_of_entry(given["catalog"])
    return sizing.sizing_subject_of_config(given["config"])
