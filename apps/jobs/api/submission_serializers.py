"""What a job is to do, and what would be wrong with it."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiExample, extend_schema_field, extend_schema_serializer
from rest_framework import serializers

from apps.accounts.api.serializers import OwnedSerializer
from apps.jobs.api.serializers import KINDS, RetryPolicySerializer
from apps.jobs.models import SecretVariable
from apps.jobs.services import JobRequest
from apps.jobs.services.secret_variables import LONGEST_VALUE, SHORTEST_VALUE
from apps.models import selectors as registry
from apps.quotas import selectors as quotas
from controlplane.domain.claims import MOST_CARDS
from controlplane.domain.jobs import JobKind
from controlplane.web.rest import LARGEST_INTEGER, VisibleField

FINETUNE_EXAMPLE = {
    "kind": "finetune",
    "name": "addresses, second try",
    "model_version": "0f4f6b0c7a4e4d5b9d3c1c8f2f6f5a10",
    "dataset_version": "6f0d2a7d8f7b4a44a7c3f3b8a5b9c2d1",
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
    """Checked by the service, which names every unknown or wrong field at once."""


class SecretVariableInputSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=SecretVariable.LONGEST_NAME)
    value = serializers.CharField(
        write_only=True,
        trim_whitespace=False,
        max_length=LONGEST_VALUE,
        help_text=f"{SHORTEST_VALUE} to {LONGEST_VALUE} characters; never returned.",
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
        OpenApiExample("A script", value=SCRIPT_EXAMPLE, request_only=True),
    ]
)
class JobSubmitSerializer(OwnedSerializer):
    kind = serializers.ChoiceField(choices=KINDS)
    name = serializers.CharField(max_length=120)
    spec = serializers.DictField(
        required=False, help_text="The engine's fields; GET /engines says which there are."
    )
    engine = serializers.CharField(
        required=False,
        max_length=40,
        help_text="Default: one that does this kind of work on the first of the chips; GET /engines lists them.",
    )
    model_version = VisibleField(visible=registry.model_versions_visible, required=False)
    dataset_version = VisibleField(visible=registry.dataset_versions_visible, required=False)
    code = VisibleField(visible=registry.code_visible, required=False, help_text="From POST /code.")
    output_name = serializers.SlugField(
        required=False, max_length=80, help_text="The model that the result becomes a version of."
    )
    output_shared = serializers.BooleanField(
        required=False, help_text="Every team may use the result; for administrators."
    )
    queue = serializers.CharField(required=False, default="default", help_text="Its name.")
    chips = serializers.ListField(
        child=serializers.CharField(max_length=60),
        required=False,
        max_length=50,
        help_text="Acceptable chips, the preferred first; any, gpu or npu stand for those of the fleet.",
    )
    cards = serializers.IntegerField(required=False, min_value=1, max_value=MOST_CARDS)
    memory = serializers.IntegerField(
        required=False, max_value=2**62, help_text="Bytes for one replica; 0: no limit."
    )
    priority = serializers.IntegerField(
        required=False, min_value=-LARGEST_INTEGER, max_value=LARGEST_INTEGER
    )
    priority_class = serializers.SlugField(
        required=False,
        max_length=40,
        help_text="Name of a priority class, in place of priority; GET /priority-classes lists them.",
    )
    secret_variables = SecretVariableInputSerializer(
        many=True,
        required=False,
        write_only=True,
        help_text="Environment variables whose values are encrypted, masked in logs and never returned.",
    )
    retry_policy = RetryPolicyField(
        required=False, help_text="Which failures start the job again, how often and how soon."
    )
    run_seconds = serializers.IntegerField(
        required=False,
        allow_null=True,
        min_value=1,
        max_value=LARGEST_INTEGER,
        help_text="The run is stopped after this long; null: no limit.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        attrs = super().validate(attrs)
        name = attrs["queue"]
        queues = {queue.name: queue for queue in quotas.queues_for(attrs["team"])}
        if name not in queues:
            message = f"no queue of this team is called {name!r}; there are {', '.join(queues)}"
            raise serializers.ValidationError({"queue": [message]})
        team = attrs.pop("team")
        if "priority_class" in attrs:
            attrs["priority"] = _priority(attrs.pop("priority_class"), beside=attrs.get("priority"))
        if "secret_variables" in attrs:
            attrs["secret_variables"] = _by_name(attrs["secret_variables"])
        given = {"spec": {}, **attrs, "queue": queues[name], "kind": JobKind(attrs["kind"])}
        if "chips" in given:
            given["chips"] = tuple(given["chips"])
        return {"team": team, "request": JobRequest(**given)}


def _by_name(variables: list[dict[str, str]]) -> dict[str, str]:
    """:raises ValidationError: if a name comes twice."""
    found = {each["name"]: each["value"] for each in variables}
    if len(found) < len(variables):
        raise serializers.ValidationError({"secret_variables": ["a name comes more than once"]})
    return found


def _priority(name: str, *, beside: int | None) -> int:
    """The number that the class has now.

    :raises ValidationError: if there is none of that name, or a number was given as well.
    """
    known = {row.name: row.value for row in quotas.priority_classes()}
    if beside is not None:
        message = f"give either priority or priority_class, got both {beside} and {name}"
    elif name not in known:
        message = f"no priority class is called {name!r}; there are {', '.join(known)}"
    else:
        return known[name]
    raise serializers.ValidationError({"priority_class": [message]})


class FindingSerializer(serializers.Serializer[Any]):
    field = serializers.CharField()
    message = serializers.CharField()


class JobCheckSerializer(serializers.Serializer[Any]):
    accepted = serializers.BooleanField()
    findings = FindingSerializer(many=True, help_text="Everything that is wrong.")
    spec = serializers.DictField(
        allow_null=True, help_text="With every default written out; null if something is wrong."
    )
    chips = serializers.ListField(
        child=serializers.CharField(),
        help_text="The chips that would do, the preferred first: any, gpu and npu stand for several.",
    )


class CodeSerializer(OwnedSerializer):
    file = serializers.FileField(help_text="A .tar.gz, .tar or .zip archive.")
