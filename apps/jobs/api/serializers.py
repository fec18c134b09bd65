"""Serializers of jobs, their submission, attempts, outputs and engines."""

from __future__ import annotations

from typing import Any, TypeAlias

from drf_spectacular.utils import OpenApiExample, extend_schema_field, extend_schema_serializer
from rest_framework import serializers

from apps.accounts.api.serializers import TeamListFilters, TeamOwnedSerializer
from apps.jobs import selectors
from apps.jobs.models import Attempt, Job, JobTransition, SecretVariable
from apps.jobs.selectors.progress import attempt_utilization
from apps.jobs.services import JobRequest
from apps.jobs.services.secret_variables import MAX_VALUE_LENGTH, MIN_VALUE_LENGTH
from apps.models import selectors as registry
from apps.quotas import selectors as quotas
from apps.quotas.api.claims import RoleShapeSerializer
from apps.quotas.api.queues import queue_reference_field, require_queue_of_team
from controlplane.domain.common.spec_fields import FieldKind, SpecField
from controlplane.domain.jobs import retries
from controlplane.domain.jobs.lifecycle import JobKind, JobState
from controlplane.domain.quotas.claims import MOST_CARDS
from controlplane.ports.engines import ArgumentVerification, EngineTask
from controlplane.web.log_responses import LogQuery
from controlplane.web.reasons import ReasonSerializerField, reason_as_response_data
from controlplane.web.rest import (
    LARGEST_INTEGER,
    EnumField,
    ObjectReference,
    QuerySerializer,
    TextListField,
    VisibleUidField,
)
from controlplane.web.spec_schemas import EngineSpecField
from controlplane.web.type_schemas import DeclaredField, ProgressPointField, ScalarMapField

KINDS = [(kind.value, kind.value) for kind in JobKind]
TASKS = {kind.value: EngineTask(kind) for kind in JobKind}


class RetryPolicySerializer(serializers.Serializer[Any]):
    """The fields of ``controlplane.domain.jobs.retries``, as a schema."""

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        return {field.name: _spec_serializer_field(field) for field in retries.FIELDS}


def _spec_serializer_field(field: SpecField) -> serializers.Field[Any, Any, Any, Any]:
    shared = {"required": False, "default": field.default, "help_text": field.help}
    if field.kind is FieldKind.INTEGER:
        return serializers.IntegerField(
            min_value=int(field.least or 0),
            max_value=None if field.most is None else int(field.most),
            **shared,
        )
    return serializers.ListField(child=serializers.ChoiceField(choices=field.choices), **shared)


class JobSerializer(serializers.ModelSerializer[Job]):
    team = ObjectReference()
    created_by = serializers.CharField(source="created_by.username")
    spec = EngineSpecField(
        tasks=TASKS, help_text="Fields of the engine with all defaults filled in."
    )
    model_version = ObjectReference(allow_null=True)
    dataset_version = ObjectReference(allow_null=True)
    code = serializers.CharField(
        source="code.uid", allow_null=True, default=None, help_text="Uid of the artifact."
    )
    queue = serializers.CharField(source="queue.name")
    priority_class = serializers.CharField(
        source="priority_class.name",
        allow_null=True,
        default=None,
        help_text="Class that had the priority at the submission; null if none had.",
    )
    output_shared = serializers.BooleanField(
        help_text="Whether the output is available to all teams."
    )
    chips = TextListField()
    asked_chips = TextListField(allow_null=True, help_text="Chips as requested, for example any.")
    shape = RoleShapeSerializer(many=True)
    retry_policy = serializers.SerializerMethodField(
        help_text="Retry policy with all defaults filled in."
    )

    @extend_schema_field(RetryPolicySerializer)
    def get_retry_policy(self, job: Job) -> dict[str, Any]:
        return job.resolved_retry_policy.as_json()

    class Meta:
        model = Job
        fields: tuple[str, ...] = (
            "uid",
            "name",
            "kind",
            "state",
            "state_reason",
            "team",
            "created_by",
            "created_at",
            "ended_at",
            "engine",
            "spec",
            "model_version",
            "dataset_version",
            "code",
            "output_name",
            "output_shared",
            "queue",
            "chips",
            "asked_chips",
            "shape",
            "priority",
            "priority_class",
            "run_seconds",
            "retry_policy",
            "cancel_requested_at",
            "cancel_requested_by",
        )


class AttemptSerializer(serializers.ModelSerializer[Attempt]):
    progress = ProgressPointField(help_text="Latest reported point.")
    continues = serializers.CharField(
        source="continues.uid",
        allow_null=True,
        default=None,
        help_text="Attempt whose checkpoints it continues from.",
    )
    overrides = ScalarMapField(
        allow_null=True,
        help_text="Fields of the spec that were changed after an out-of-memory failure.",
    )
    retries = serializers.IntegerField(
        help_text="Automatic retries up to this attempt, since the submission or the last manual "
        "retry."
    )
    retry_cause = serializers.CharField(
        help_text="Failure of the previous attempt if this is an automatic retry."
    )
    starts_after = serializers.DateTimeField(
        allow_null=True, help_text="End of the back-off before this retry."
    )

    mfu = serializers.SerializerMethodField(
        help_text="Model FLOPs utilization of the latest report, 0 to 1; null if unknown."
    )

    @extend_schema_field(serializers.FloatField(allow_null=True))
    def get_mfu(self, attempt: Attempt) -> float | None:
        found = attempt_utilization(attempt)
        return None if found is None else found.mfu

    class Meta:
        model = Attempt
        fields = (
            "uid",
            "number",
            "state",
            "message",
            "chip",
            "claim_uid",
            "continues",
            "overrides",
            "retries",
            "retry_cause",
            "starts_after",
            "stop_reason",
            "exit_code",
            "exit_cause",
            "log_tail",
            "progress",
            "mfu",
            "created_at",
            "admitted_at",
            "started_at",
            "reported_at",
            "ended_at",
        )


class PendingReasonSerializer(serializers.Serializer[Any]):
    explanation = ReasonSerializerField()
    numbers = ScalarMapField()


class JobOutputsSerializer(serializers.Serializer[Any]):
    model_version = ObjectReference(allow_null=True)
    evaluation = ObjectReference(allow_null=True)
    artifact = serializers.CharField(
        source="artifact.uid",
        allow_null=True,
        default=None,
        help_text="Uid of the artifact of a script job.",
    )


class SecretVariableSerializer(serializers.ModelSerializer[SecretVariable]):
    set = serializers.BooleanField(help_text="False once its value has been deleted.")

    class Meta:
        model = SecretVariable
        fields = ("name", "set")


class JobDetailSerializer(JobSerializer):
    secret_variables = SecretVariableSerializer(
        many=True, help_text="Names of secret variables; values are never returned."
    )
    attempt = serializers.SerializerMethodField(help_text="Latest attempt.")
    pending_reason = serializers.SerializerMethodField(
        help_text="Pending reason; null if cards are allocated."
    )
    outputs = serializers.SerializerMethodField()

    class Meta(JobSerializer.Meta):
        fields = (
            *JobSerializer.Meta.fields,
            "secret_variables",
            "attempt",
            "pending_reason",
            "outputs",
        )

    @extend_schema_field(AttemptSerializer)
    def get_attempt(self, job: Job) -> dict[str, Any]:
        return dict(AttemptSerializer(selectors.latest_attempt(job)).data)

    @extend_schema_field(PendingReasonSerializer(allow_null=True))
    def get_pending_reason(self, job: Job) -> dict[str, Any] | None:
        claim = selectors.pending_claim(job)
        if claim is None:
            return None
        return {
            "explanation": reason_as_response_data(claim.explanation),
            "numbers": claim.explanation_numbers,
        }

    @extend_schema_field(JobOutputsSerializer)
    def get_outputs(self, job: Job) -> dict[str, Any]:
        return dict(JobOutputsSerializer(selectors.job_outputs(job)).data)


class JobTransitionSerializer(serializers.ModelSerializer[JobTransition]):
    class Meta:
        model = JobTransition
        fields = ("from_state", "event", "to_state", "reason", "actor", "at")


class WorkloadFilters(TeamListFilters):
    created_by = serializers.CharField(required=False, help_text="A username; me is the caller.")
    text = serializers.CharField(required=False, help_text="Text contained in the name.")

    def validate_created_by(self, value: str) -> str:
        return self.context["request"].user.get_username() if value == "me" else value


class JobFilters(WorkloadFilters):
    lookups = {
        "state": "state__in",
        "kind": "kind__in",
        "team": "team",
        "model": "model_version__line__name",
        "model_version": "model_version",
        "created_by": "created_by__username",
        "text": "name__icontains",
    }

    state = serializers.MultipleChoiceField(
        choices=[(state.value, state.value) for state in JobState], required=False
    )
    kind = serializers.MultipleChoiceField(choices=KINDS, required=False)
    model = serializers.CharField(required=False, help_text="Name of the base model.")
    model_version = VisibleUidField(
        visible=registry.model_versions_visible,
        required=False,
        help_text="Model version as name@number, or its uid.",
    )


class TrainingCurveQuery(QuerySerializer):
    after = serializers.IntegerField(
        default=-1,
        min_value=-1,
        max_value=LARGEST_INTEGER,
        help_text="Return only points after this step.",
    )


class TrainingCurveSerializer(serializers.Serializer[Any]):
    state = EnumField(JobState)
    points = serializers.ListField(
        child=ProgressPointField(),
        help_text="Points with a step and the reported metrics, for example loss and "
        "learning_rate.",
    )


class JobLogQuery(LogQuery):
    attempt = serializers.IntegerField(
        required=False,
        min_value=1,
        max_value=LARGEST_INTEGER,
        help_text="Number of the attempt. Default: the latest.",
    )
    follow = serializers.BooleanField(
        default=False, help_text="Stream plain text until the attempt has ended."
    )


#: A value of a field of a spec that is no group.
SpecValue: TypeAlias = bool | int | float | str | list[str] | dict[str, str] | None


class EngineFieldSerializer(serializers.Serializer[Any]):
    """One field of an engine's spec, as its plug-in describes it."""

    name = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment] # declared, not an attribute
    help = serializers.CharField()
    kind = serializers.CharField()
    required = serializers.BooleanField()  # type: ignore[assignment] # as above
    default = DeclaredField(
        declared=lambda: SpecValue | dict[str, SpecValue],
        help_text="Of the type of the field; null: see help.",
    )
    least = serializers.FloatField(allow_null=True)
    most = serializers.FloatField(allow_null=True)
    choices = TextListField()


class EngineSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    title = serializers.CharField(help_text="Display name.")
    environment = serializers.CharField(
        help_text="Software environment; empty if the engine is available only as an image."
    )
    versions = serializers.CharField(help_text="Supported versions (PEP 440).")
    default_version = serializers.CharField()
    flags = EnumField(
        ArgumentVerification,
        help_text="How its arguments were verified: by running the engine, by the engine's own "
        "parser, or not.",
    )
    formats = TextListField(help_text="Quantized weight formats that it loads or creates.")
    metrics = serializers.DictField(
        child=serializers.CharField(),
        help_text="Metric names of Ninefold with the corresponding series of the engine.",
    )
    images = serializers.DictField(child=serializers.CharField(), help_text="Images by chip.")
    chips = serializers.DictField(
        child=TextListField(),
        help_text="Supported chips by task.",
    )
    remarks = TextListField()
    sources = TextListField()
    tasks = serializers.DictField(
        child=EngineFieldSerializer(many=True), help_text="Spec fields by task."
    )


FINETUNE_EXAMPLE = {
    "kind": "finetune",
    "name": "addresses, second try",
    "team": "vision",
    "model_version": "qwen3-8b@3",
    "dataset_version": "tickets@2",
    "output_name": "address-parser",
    "spec": {"method": "lora", "learning_rate": 0.0002, "epochs": 3},
}
SCRIPT_EXAMPLE = {
    "kind": "script",
    "name": "count tokens",
    "code": "5b8d0f6c1e2a4b7c9d3e4f5a6b7c8d9e",
    "spec": {"argv": ["python", "count.py"], "maximum_run_time_seconds": 600},
}


@extend_schema_field(RetryPolicySerializer)
class RetryPolicyField(serializers.DictField):
    """Validated by the service, which reports every unknown or invalid field at once."""


class SecretVariableInputSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=SecretVariable.MAX_NAME_LENGTH)
    value = serializers.CharField(
        write_only=True,
        trim_whitespace=False,
        max_length=MAX_VALUE_LENGTH,
        help_text=f"{MIN_VALUE_LENGTH} to {MAX_VALUE_LENGTH} characters; never returned.",
        style={"input_type": "password"},
    )


@extend_schema_serializer(
    examples=[
        OpenApiExample("A fine-tune", value=FINETUNE_EXAMPLE, request_only=True),
        OpenApiExample(
            "An evaluation",
            value={
                "kind": "evaluate",
                "name": "how good is it?",
                "model_version": FINETUNE_EXAMPLE["model_version"],
                "dataset_version": FINETUNE_EXAMPLE["dataset_version"],
                "spec": {"metrics": ["exact_match", "label_accuracy"], "split": "test"},
            },
            request_only=True,
        ),
        OpenApiExample(
            "A quantization",
            value={
                "kind": "quantize",
                "name": "tickets at 8 bits",
                "model_version": "vision/tickets@4",
                "dataset_version": "vision/tickets@2",
                "output_name": "tickets-w8a8",
                "spec": {"scheme": "w8a8-smoothquant", "tolerance": {"accuracy_drop": 0.02}},
            },
            request_only=True,
        ),
        OpenApiExample("A script", value=SCRIPT_EXAMPLE, request_only=True),
    ]
)
class JobSubmitSerializer(TeamOwnedSerializer):
    kind = serializers.ChoiceField(choices=KINDS)
    name = serializers.CharField(max_length=120)
    spec = EngineSpecField(
        tasks=TASKS, required=False, help_text="Fields of the engine; see GET /engines."
    )
    engine = serializers.CharField(
        required=False,
        max_length=40,
        help_text="Default: an engine that supports the task on the first chip; see GET /engines.",
    )
    model_version = VisibleUidField(visible=registry.model_versions_visible, required=False)
    dataset_version = VisibleUidField(visible=registry.dataset_versions_visible, required=False)
    code = VisibleUidField(
        visible=registry.code_archives_visible,
        required=False,
        help_text="Uid of the artifact from POST /code.",
    )
    output_name = serializers.SlugField(
        required=False,
        max_length=80,
        help_text="Name of the model of which the output becomes a version.",
    )
    output_shared = serializers.BooleanField(
        required=False, help_text="Make the output available to all teams; for administrators."
    )
    queue = queue_reference_field()
    chips = serializers.ListField(
        child=serializers.CharField(max_length=60),
        required=False,
        max_length=50,
        help_text="Acceptable chips in order of preference; any, gpu or npu select those of the "
        "fleet. Default: cpu.",
    )
    cards = serializers.IntegerField(required=False, min_value=1, max_value=MOST_CARDS)
    memory = serializers.IntegerField(
        required=False, max_value=2**62, help_text="Memory of one replica in bytes; 0: no limit."
    )
    priority = serializers.IntegerField(
        required=False, min_value=-LARGEST_INTEGER, max_value=LARGEST_INTEGER
    )
    priority_class = serializers.SlugField(
        required=False,
        max_length=40,
        help_text="Name of a priority class, instead of priority; see GET /priority-classes.",
    )
    secret_variables = SecretVariableInputSerializer(
        many=True,
        required=False,
        write_only=True,
        help_text="Environment variables whose values are encrypted, masked in logs and never returned.",
    )
    retry_policy = RetryPolicyField(
        required=False, help_text="Failures that are retried, number of retries and back-off."
    )
    run_seconds = serializers.IntegerField(
        required=False,
        allow_null=True,
        min_value=1,
        max_value=LARGEST_INTEGER,
        help_text="Maximum run time in seconds; null: no limit.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        attrs = super().validate(attrs)
        queue = require_queue_of_team(attrs["queue"], team=attrs["team"])
        team = attrs.pop("team")
        if "priority_class" in attrs:
            attrs["priority"] = _priority_of_class(
                attrs.pop("priority_class"), priority=attrs.get("priority")
            )
        if "secret_variables" in attrs:
            attrs["secret_variables"] = _secret_values_by_name(attrs["secret_variables"])
        values = {"spec": {}, **attrs, "queue": queue, "kind": JobKind(attrs["kind"])}
        if "chips" in values:
            values["chips"] = tuple(values["chips"])
        return {"team": team, "request": JobRequest(**values)}


def _secret_values_by_name(variables: list[dict[str, str]]) -> dict[str, str]:
    """Values by name.

    :raises ValidationError: if a name is repeated.
    """
    found = {each["name"]: each["value"] for each in variables}
    if len(found) < len(variables):
        raise serializers.ValidationError({"secret_variables": ["a name comes more than once"]})
    return found


def _priority_of_class(name: str, *, priority: int | None) -> int:
    """The current value of the priority class.

    :raises ValidationError: if there is no class of that name, or a priority was given as well.
    """
    known = {row.name: row.value for row in quotas.priority_classes()}
    if priority is not None:
        message = f"give either priority or priority_class, got both {priority} and {name}"
    elif name not in known:
        message = f"no priority class is named {name!r}; available classes: {', '.join(known)}"
    else:
        return known[name]
    raise serializers.ValidationError({"priority_class": [message]})


class FindingSerializer(serializers.Serializer[Any]):
    field = serializers.CharField()
    message = serializers.CharField()


class JobCheckSerializer(serializers.Serializer[Any]):
    accepted = serializers.BooleanField()
    findings = FindingSerializer(many=True, help_text="All errors.")
    spec = EngineSpecField(
        tasks=TASKS,
        allow_null=True,
        help_text="Spec with all defaults filled in; null if there are errors.",
    )
    chips = TextListField(
        help_text="Acceptable chips in order of preference, with any, gpu and npu resolved."
    )


class CodeArchiveSerializer(TeamOwnedSerializer):
    file = serializers.FileField(help_text="A .tar.gz, .tar or .zip archive.")
