from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from apps.accounts import selectors as accounts
from apps.jobs import selectors
from apps.jobs.models import Attempt, Job, JobTransition, SecretVariable
from apps.jobs.selectors.utilization import utilization_of
from apps.models import selectors as registry
from apps.quotas.api.serializers import RoleShapeSerializer
from controlplane.domain import retries
from controlplane.domain.fields import Field, Kind
from controlplane.domain.jobs import JobKind, JobState
from controlplane.web.rest import LARGEST_INTEGER, Filters, Query, Reference, VisibleField
from controlplane.web.texts import LogQuery

KINDS = [(kind.value, kind.value) for kind in JobKind]


class RetryPolicySerializer(serializers.Serializer[Any]):
    """The fields of ``controlplane.domain.retries``, as a schema."""

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        return {field.name: _described(field) for field in retries.FIELDS}


def _described(field: Field) -> serializers.Field[Any, Any, Any, Any]:
    shared = {"required": False, "default": field.default, "help_text": field.help}
    if field.kind is Kind.INTEGER:
        return serializers.IntegerField(
            min_value=int(field.least or 0),
            max_value=None if field.most is None else int(field.most),
            **shared,
        )
    return serializers.ListField(child=serializers.ChoiceField(choices=field.choices), **shared)


class JobSerializer(serializers.ModelSerializer[Job]):
    team = Reference()
    created_by = serializers.CharField(source="created_by.username")
    spec = serializers.DictField(help_text="The engine's fields with every default written out.")
    model_version = Reference(allow_null=True)
    dataset_version = Reference(allow_null=True)
    code = serializers.CharField(
        source="code.uid", allow_null=True, default=None, help_text="An artifact's uid."
    )
    queue = serializers.CharField(source="queue.name")
    chips = serializers.ListField(child=serializers.CharField())
    asked_chips = serializers.ListField(
        child=serializers.CharField(),
        allow_null=True,
        help_text="What was asked for where that is not the chips themselves, for example any.",
    )
    shape = RoleShapeSerializer(many=True)
    retry_policy = serializers.SerializerMethodField(
        help_text="Which failures start it again, with every default filled in."
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
            "queue",
            "chips",
            "asked_chips",
            "shape",
            "priority",
            "run_seconds",
            "retry_policy",
            "cancel_requested_at",
            "cancel_requested_by",
        )


class AttemptSerializer(serializers.ModelSerializer[Attempt]):
    progress = serializers.DictField(help_text="The newest point that it reported.")
    continues = serializers.CharField(
        source="continues.uid",
        allow_null=True,
        default=None,
        help_text="The attempt whose checkpoints it goes on from.",
    )
    overrides = serializers.DictField(
        allow_null=True,
        help_text="Fields of the spec that are others than the job's, after it ran out of memory.",
    )
    retries = serializers.IntegerField(
        help_text="Automatic retries up to this attempt, since it was submitted or retried by hand."
    )
    retry_cause = serializers.CharField(
        help_text="Why the attempt before failed, where this one is an automatic retry."
    )
    starts_after = serializers.DateTimeField(
        allow_null=True, help_text="When the back-off before this retry is over."
    )

    mfu = serializers.SerializerMethodField(
        help_text="Share of its cards' peak rate that the newest report stands for; null where it is not known."
    )

    @extend_schema_field(serializers.FloatField(allow_null=True))
    def get_mfu(self, attempt: Attempt) -> float | None:
        found = utilization_of(attempt)
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


class WaitSerializer(serializers.Serializer[Any]):
    explanation = serializers.CharField()
    numbers = serializers.DictField()


class OutputsSerializer(serializers.Serializer[Any]):
    model_version = Reference(allow_null=True)
    evaluation = Reference(allow_null=True)
    artifact = serializers.CharField(
        source="artifact.uid", allow_null=True, default=None, help_text="What a script left."
    )


class SecretVariableSerializer(serializers.ModelSerializer[SecretVariable]):
    set = serializers.BooleanField(help_text="False once its value has been deleted.")

    class Meta:
        model = SecretVariable
        fields = ("name", "set")


class JobDetailSerializer(JobSerializer):
    secret_variables = SecretVariableSerializer(
        many=True, help_text="Their names; values are never returned."
    )
    attempt = serializers.SerializerMethodField(help_text="The newest.")
    waits = serializers.SerializerMethodField(help_text="Why it has no cards yet.")
    outputs = serializers.SerializerMethodField()

    class Meta(JobSerializer.Meta):
        fields = (*JobSerializer.Meta.fields, "secret_variables", "attempt", "waits", "outputs")

    @extend_schema_field(AttemptSerializer)
    def get_attempt(self, job: Job) -> dict[str, Any]:
        return dict(AttemptSerializer(selectors.latest_attempt(job)).data)

    @extend_schema_field(WaitSerializer(allow_null=True))
    def get_waits(self, job: Job) -> dict[str, Any] | None:
        claim = selectors.waiting_claim(job)
        if claim is None:
            return None
        return {"explanation": claim.explanation, "numbers": claim.explanation_numbers}

    @extend_schema_field(OutputsSerializer)
    def get_outputs(self, job: Job) -> dict[str, Any]:
        return dict(OutputsSerializer(selectors.job_outputs(job)).data)


class JobTransitionSerializer(serializers.ModelSerializer[JobTransition]):
    class Meta:
        model = JobTransition
        fields = ("from_state", "event", "to_state", "reason", "actor", "at")


class JobFilters(Filters):
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
    team = VisibleField(visible=accounts.teams_of, required=False, help_text="A team's uid.")
    model = serializers.CharField(
        required=False, help_text="The name of the model it started from."
    )
    model_version = VisibleField(
        visible=registry.model_versions_visible, required=False, help_text="A model version's uid."
    )
    created_by = serializers.CharField(required=False, help_text="A username; me is the caller.")
    text = serializers.CharField(required=False, help_text="Part of the name.")

    def validate_created_by(self, value: str) -> str:
        return self.context["request"].user.get_username() if value == "me" else value


class CurveQuery(Query):
    after = serializers.IntegerField(
        default=-1, min_value=-1, max_value=LARGEST_INTEGER, help_text="Only points of later steps."
    )


class CurveSerializer(serializers.Serializer[Any]):
    state = serializers.ChoiceField(choices=[(state.value, state.value) for state in JobState])
    points = serializers.ListField(
        child=serializers.DictField(),
        help_text="Each with its step, and what was reported: loss, learning_rate …",
    )


class JobLogQuery(LogQuery):
    attempt = serializers.IntegerField(
        required=False,
        min_value=1,
        max_value=LARGEST_INTEGER,
        help_text="Its number; else the newest.",
    )
    follow = serializers.BooleanField(
        default=False, help_text="Stream plain text until the attempt has ended."
    )
