from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar

from django.conf import settings
from drf_spectacular.utils import OpenApiExample, extend_schema_field, extend_schema_serializer
from rest_framework import serializers

from apps.accounts.api.serializers import TeamListFilters, TeamOwnedSerializer, validate_future
from apps.fleet import selectors as fleet
from apps.models import selectors as registry
from apps.quotas.api.queues import queue_reference_field, require_queue_of_team
from apps.serving import selectors
from apps.serving.models import (
    ApiKey,
    Backend,
    Deployment,
    GatewayCall,
    Replica,
    Revision,
    RevisionAdapter,
    WeightDownload,
)
from apps.serving.selectors.deployments import RolloutStatus, rollout_status
from apps.serving.selectors.lora_adapters import MAX_ADAPTERS, AdapterConfiguration
from apps.serving.selectors.revision_configurations import MAX_REPLICAS, replica_node_counts
from apps.serving.services.weight_downloads import MAX_NODES as MAX_DOWNLOAD_NODES
from apps.serving.services.weight_downloads import NodeSelection
from controlplane.domain.common.reasons import Reason
from controlplane.domain.quotas.claims import MOST_CARDS
from controlplane.domain.serving.lifecycle import DeploymentState, WeightDownloadState
from controlplane.domain.serving.model_kinds import Operation
from controlplane.domain.serving.rollouts import (
    BATCH_PATTERN,
    MAX_BATCH_REPLICAS,
    RolloutPhase,
    RolloutStrategy,
)
from controlplane.ports.engines import EngineTask
from controlplane.web import rest
from controlplane.web.log_responses import LogQuery
from controlplane.web.reasons import ReasonSerializerField
from controlplane.web.references import ReferenceNaming, register_reference_naming
from controlplane.web.spec_schemas import EngineSpecField

register_reference_naming(
    Deployment,
    ReferenceNaming(
        noun=Reason("reference.noun.deployment", "deployment"),
        owner="team__slug",
        example="assistant",
    ),
)


class DeploymentSerializer(serializers.ModelSerializer[Deployment]):
    team = rest.ObjectReference()
    created_by = serializers.CharField(source="created_by.username")
    queue = serializers.CharField(source="queue.name")
    route = serializers.CharField(
        source="route.name",
        allow_null=True,
        default=None,
        help_text="Model name at the gateway.",
    )
    ready_replicas = serializers.IntegerField()

    class Meta:
        model = Deployment
        fields: tuple[str, ...] = (
            "uid",
            "name",
            "route",
            "state",
            "state_reason",
            "team",
            "created_by",
            "created_at",
            "queue",
            "replica_count",
            "ready_replicas",
            "max_surge",
            "max_unavailable",
            "paused_at",
            "deletion_requested_at",
        )


class ReplicaSerializer(serializers.ModelSerializer[Replica]):
    class Meta:
        model = Replica
        fields = (
            "uid",
            "state",
            "message",
            "chip",
            "claim_uid",
            "generation",
            "crashes",
            "restart_at",
            "ready_at",
            "log_tail",
            "created_at",
        )


class ReplicaLogQuery(LogQuery):
    process = serializers.IntegerField(
        default=0,
        min_value=0,
        max_value=MOST_CARDS - 1,
        help_text="Index of the process of a replica on several nodes. Default: 0, which serves the requests.",
    )


class DeploymentEventSerializer(serializers.Serializer[Any]):
    replica = serializers.CharField(help_text="Uid of the replica; empty: the deployment.")
    from_state = serializers.CharField()
    event = serializers.CharField()
    to_state = serializers.CharField()
    reason = ReasonSerializerField()
    actor = serializers.CharField()
    at = serializers.DateTimeField()


class DeploymentBackendSerializer(serializers.ModelSerializer[Backend]):
    chips = rest.TextListField()
    replicas = ReplicaSerializer(
        many=True, source="live", help_text="Replicas that have not stopped."
    )

    class Meta:
        model = Backend
        fields = ("uid", "chips", "replicas")


class RevisionAdapterSerializer(serializers.ModelSerializer[RevisionAdapter]):
    name = serializers.CharField(help_text="Model name at the gateway.")
    model_version = rest.ObjectReference()

    class Meta:
        model = RevisionAdapter
        fields = ("name", "model_version", "rank")


class RevisionSerializer(serializers.ModelSerializer[Revision]):
    model_version = rest.ObjectReference()
    created_by = serializers.CharField(source="created_by.username")
    spec = EngineSpecField(tasks=EngineTask.SERVE)
    operations = serializers.SerializerMethodField(
        help_text="Operations of the model at the gateway."
    )
    chips = rest.TextListField()
    nodes = serializers.SerializerMethodField(
        help_text="Nodes of one replica; each has the same number of its cards."
    )
    adapters = RevisionAdapterSerializer(
        many=True, help_text="LoRA adapters that are served beside the model."
    )
    backends = DeploymentBackendSerializer(many=True)

    class Meta:
        model = Revision
        fields = (
            "uid",
            "number",
            "model_version",
            "engine",
            "spec",
            "operations",
            "chips",
            "cards",
            "nodes",
            "adapters",
            "failed_at",
            "failure_reason",
            "created_by",
            "created_at",
            "backends",
        )

    @extend_schema_field(serializers.ListField(child=rest.EnumField(Operation)))
    def get_operations(self, revision: Revision) -> list[str]:
        return [operation.value for operation in selectors.revision_operations(revision)]

    def get_nodes(self, revision: Revision) -> int:
        return replica_node_counts(revision.chips, revision.cards)[0]


class RolloutStatusSerializer(serializers.Serializer[RolloutStatus]):
    phase = rest.EnumField(RolloutPhase)
    revision = serializers.IntegerField(
        source="revision.number", help_text="The revision that the deployment should have."
    )
    serving_revision = serializers.IntegerField(
        source="serving.number", help_text="Another one while a rollout is in progress."
    )
    replicas = serializers.IntegerField(help_text="Replicas that the deployment should have.")
    updated_replicas = serializers.IntegerField(
        source="updated", help_text="Replicas of the revision that have not stopped."
    )
    updated_ready_replicas = serializers.IntegerField(source="updated_ready")
    old_replicas = serializers.IntegerField(
        source="old", help_text="Replicas of other revisions that have not stopped."
    )
    old_ready_replicas = serializers.IntegerField(source="old_ready")
    max_surge = serializers.IntegerField(
        source="limits.max_surge", help_text="In replicas, percentages resolved."
    )
    max_unavailable = serializers.IntegerField(
        source="limits.max_unavailable", help_text="In replicas, percentages resolved."
    )


class DeploymentDetailSerializer(DeploymentSerializer):
    rollout = serializers.SerializerMethodField()
    revisions = serializers.SerializerMethodField(help_text="Newest first.")
    gateway_url = serializers.SerializerMethodField(
        help_text="OpenAI-compatible base URL of the gateway."
    )

    class Meta(DeploymentSerializer.Meta):
        fields = (*DeploymentSerializer.Meta.fields, "gateway_url", "rollout", "revisions")

    def get_gateway_url(self, deployment: Deployment) -> str:
        return f"{settings.NINEFOLD_GATEWAY_URL.rstrip('/')}/v1"

    @extend_schema_field(RolloutStatusSerializer)
    def get_rollout(self, deployment: Deployment) -> dict[str, Any]:
        return dict(RolloutStatusSerializer(rollout_status(deployment)).data)

    @extend_schema_field(RevisionSerializer(many=True))
    def get_revisions(self, deployment: Deployment) -> list[dict[str, Any]]:
        revisions = selectors.revisions_of(deployment)
        return list(RevisionSerializer(revisions, many=True).data)


class AdapterRequestSerializer(rest.StrictSerializer[Any]):
    name = serializers.SlugField(
        max_length=80, help_text="Model name at the gateway; unique in the company."
    )
    model_version = rest.VisibleUidField(
        visible=registry.model_versions_visible,
        help_text="A version that was fine-tuned with LoRA from the deployed one.",
    )


@extend_schema_field(
    {
        "oneOf": [
            {"type": "integer", "minimum": 0, "maximum": MAX_BATCH_REPLICAS},
            {"type": "string", "pattern": BATCH_PATTERN},
        ]
    }
)
class ReplicaAmountField(serializers.Field[str, Any, str, Any]):
    """A number of replicas, or a percentage of them, as text."""

    default_error_messages: ClassVar = {
        "type": "must be a number of replicas (1) or a percentage of them (25%), got {value}"
    }

    def to_internal_value(self, data: Any) -> str:
        if type(data) is not int and not isinstance(data, str):
            self.fail("type", value=repr(data))
        return str(data)

    def to_representation(self, value: str) -> str:
        return value


class RolloutStrategySerializer(rest.StrictSerializer[Any]):
    """How many replicas a rollout replaces at a time."""

    max_surge = ReplicaAmountField(
        required=False,
        help_text="Replicas beyond the wanted number during a rollout: 0 to 64, or 0% to 100% of the replicas, "
        "rounded up. Default: 1.",
    )
    max_unavailable = ReplicaAmountField(
        required=False,
        help_text="Replicas that may be missing during a rollout: 0 to 64, or 0% to 100% of the replicas, rounded "
        "down; not 0 if max_surge is 0. Default: 0.",
    )

    @staticmethod
    def strategy(attrs: Mapping[str, Any]) -> dict[str, str]:
        """The given fields."""
        return {name: attrs[name] for name in ("max_surge", "max_unavailable") if name in attrs}


class RolloutUndoSerializer(rest.StrictSerializer[Any]):
    to_revision = serializers.IntegerField(
        required=False,
        default=None,
        allow_null=True,
        min_value=1,
        max_value=rest.LARGEST_INTEGER,
        help_text="Number of the revision. Default: the one that serves while a rollout is in progress, or else "
        "the one before the newest.",
    )


class RevisionConfigurationSerializer(rest.StrictSerializer[Any]):
    """What a revision serves, and how."""

    model_version = rest.VisibleUidField(visible=registry.model_versions_visible)
    engine = serializers.CharField(required=False, max_length=40)
    spec = EngineSpecField(
        tasks=EngineTask.SERVE,
        required=False,
        help_text="Fields of the engine; see GET /engines.",
    )
    chips = serializers.ListField(
        child=serializers.CharField(max_length=60),
        required=False,
        max_length=50,
        help_text="Acceptable chips in order of preference. Default of a new deployment: the chip of the fleet "
        "that holds the model on the fewest cards; free cards come first.",
    )
    cards = serializers.IntegerField(
        required=False,
        min_value=1,
        max_value=MOST_CARDS,
        help_text="Cards of one replica: of one node, or a multiple of all cards of a node. Default of a new "
        "deployment: the fewest that hold the model, of one node or else of 2, 4 … nodes.",
    )
    adapters = serializers.ListField(
        child=AdapterRequestSerializer(),
        required=False,
        max_length=MAX_ADAPTERS,
        help_text="LoRA adapters to serve beside the model, each under a model name of its own.",
    )

    @staticmethod
    def given(attrs: Mapping[str, Any]) -> dict[str, Any]:
        """The given fields, as a ``RevisionConfiguration`` has them."""
        names = ("model_version", "engine", "spec", "chips", "cards", "adapters")
        given = {name: attrs[name] for name in names if name in attrs}
        if "chips" in given:
            given["chips"] = tuple(given["chips"])
        if "adapters" in given:
            given["adapters"] = tuple(AdapterConfiguration(**one) for one in given["adapters"])
        return given


class RevisionRequestSerializer(RevisionConfigurationSerializer):
    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        return self.given(attrs)


@extend_schema_serializer(
    examples=[
        OpenApiExample(
            "One replica on one card",
            value={
                "name": "address-parser",
                "team": "vision",
                "model_version": "tickets@4",
                "replicas": 1,
                "spec": {"context_length": 8192},
            },
            request_only=True,
        )
    ]
)
class DeploymentCreateSerializer(
    RevisionConfigurationSerializer, RolloutStrategySerializer, TeamOwnedSerializer
):
    name = serializers.SlugField(
        max_length=80, help_text="Model name at the gateway; unique in the company."
    )
    queue = queue_reference_field()
    replicas = serializers.IntegerField(
        required=False, default=1, min_value=1, max_value=MAX_REPLICAS
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        attrs = super().validate(attrs)
        return {
            "team": attrs["team"],
            "name": attrs["name"],
            "queue": require_queue_of_team(attrs["queue"], team=attrs["team"]),
            "replicas": attrs["replicas"],
            "configuration": self.given(attrs),
            "strategy": RolloutStrategy(**self.strategy(attrs)),
        }


class DeploymentScaleSerializer(rest.StrictSerializer[Any]):
    replicas = serializers.IntegerField(
        min_value=1,
        max_value=MAX_REPLICAS,
        help_text="Number of replicas, at least 1; to scale to zero, stop the deployment.",
    )


class DeploymentFilters(TeamListFilters):
    lookups = {"state": "state__in", "team": "team", "text": "name__icontains"}

    state = serializers.MultipleChoiceField(
        choices=[(state.value, state.value) for state in DeploymentState], required=False
    )
    text = serializers.CharField(required=False, help_text="Text contained in the name.")


class WeightDownloadSerializer(serializers.ModelSerializer[WeightDownload]):
    team = rest.ObjectReference()
    created_by = serializers.CharField(source="created_by.username")
    model_version = rest.ObjectReference()
    cluster = rest.ObjectReference(source="node.cluster")
    node = serializers.CharField(source="node.name")
    size = serializers.IntegerField(help_text="Bytes of the weights.")
    downloaded = serializers.IntegerField(
        help_text="Bytes of the weights in the cache, as far as the node has reported."
    )

    class Meta:
        model = WeightDownload
        fields = (
            "uid",
            "model_version",
            "cluster",
            "node",
            "state",
            "message",
            "size",
            "downloaded",
            "team",
            "created_by",
            "created_at",
            "ended_at",
        )


@extend_schema_serializer(
    examples=[
        OpenApiExample(
            "All nodes of a node pool",
            value={
                "team": "vision",
                "model_version": "tickets@4",
                "cluster": "cluster-a",
                "labels": {"node-pool": "inference"},
            },
            request_only=True,
        )
    ]
)
class WeightDownloadCreateSerializer(TeamOwnedSerializer):
    model_version = rest.VisibleUidField(visible=registry.model_versions_visible)
    cluster = rest.VisibleUidField(visible=lambda _user: fleet.clusters_with_counts())
    nodes = serializers.ListField(
        child=serializers.CharField(max_length=120),
        required=False,
        default=list,
        max_length=MAX_DOWNLOAD_NODES,
        help_text="Names of nodes. Default: every node that matches the other fields.",
    )
    chip = serializers.CharField(
        required=False,
        max_length=60,
        help_text="Only nodes with cards of this chip. Default: any.",
    )
    labels = serializers.DictField(
        child=serializers.CharField(max_length=63, allow_blank=True),
        required=False,
        default=dict,
        help_text="Only nodes with all of these labels, such as the label of a node pool. Default: any.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        attrs = super().validate(attrs)
        return {
            "team": attrs["team"],
            "model_version": attrs["model_version"],
            "nodes": NodeSelection(
                cluster=attrs["cluster"],
                names=tuple(attrs["nodes"]),
                chip=attrs.get("chip", ""),
                labels=attrs["labels"],
            ),
        }


class WeightDownloadFilters(TeamListFilters):
    lookups = {
        "state": "state__in",
        "team": "team",
        "model_version": "model_version",
        "cluster": "node__cluster",
        "node": "node__name",
    }

    state = serializers.MultipleChoiceField(
        choices=[(state.value, state.value) for state in WeightDownloadState], required=False
    )
    model_version = rest.VisibleUidField(visible=registry.model_versions_visible, required=False)
    cluster = rest.VisibleUidField(
        visible=lambda _user: fleet.clusters_with_counts(), required=False
    )
    node = serializers.CharField(required=False, help_text="Name of the node.")


class ApiKeySerializer(serializers.ModelSerializer[ApiKey]):
    team = rest.ObjectReference()
    created_by = serializers.CharField(source="created_by.username")
    routes = rest.TextListField(
        allow_null=True, help_text="Models that the key permits; null: all models of the team."
    )

    class Meta:
        model = ApiKey
        fields: tuple[str, ...] = (
            "uid",
            "name",
            "prefix",
            "team",
            "created_by",
            "created_at",
            "routes",
            "requests_per_minute",
            "tokens_per_minute",
            "concurrency",
            "expires_at",
            "revoked_at",
        )


class NewApiKeySerializer(ApiKeySerializer):
    text = serializers.CharField(help_text="The key, shown only in this response.")

    class Meta(ApiKeySerializer.Meta):
        fields = (*ApiKeySerializer.Meta.fields, "text")


def _limit_field() -> serializers.IntegerField:
    return serializers.IntegerField(
        required=False, allow_null=True, default=None, min_value=1, max_value=rest.LARGEST_INTEGER
    )


class ApiKeySettingsSerializer(rest.StrictSerializer[Any]):
    name = serializers.CharField(max_length=80)
    routes = serializers.ListField(
        child=serializers.SlugField(max_length=80),
        required=False,
        allow_null=True,
        default=None,
        max_length=200,
        help_text="Models that the key permits; null: all models of the team.",
    )
    requests_per_minute = _limit_field()
    tokens_per_minute = _limit_field()
    concurrency = _limit_field()
    expires_at = serializers.DateTimeField(required=False, allow_null=True, default=None)

    def validate_expires_at(self, value: Any) -> Any:
        return validate_future(value)


@extend_schema_serializer(
    examples=[
        OpenApiExample(
            "A key for one model",
            value={
                "name": "order service",
                "routes": ["address-parser"],
                "requests_per_minute": 600,
            },
            request_only=True,
        )
    ]
)
class ApiKeyCreateSerializer(TeamOwnedSerializer, ApiKeySettingsSerializer):
    pass


class ApiKeyChangeSerializer(rest.ChangeSerializer[Any], ApiKeySettingsSerializer):
    """What is left out is not changed; null removes a limit."""


class ApiKeyFilters(TeamListFilters):
    lookups = {"team": "team"}


class GatewayUsageSerializer(serializers.ModelSerializer[GatewayCall]):
    key = rest.ObjectReference(allow_null=True)
    team = rest.ObjectReference(allow_null=True)

    class Meta:
        model = GatewayCall
        fields = (
            "at",
            "key",
            "team",
            "route",
            "operation",
            "status",
            "outcome",
            "prompt_tokens",
            "completion_tokens",
            "duration_ms",
            "first_token_ms",
        )


class GatewayUsageTotalsSerializer(serializers.Serializer[Any]):
    calls = serializers.IntegerField()
    prompt_tokens = serializers.IntegerField()
    completion_tokens = serializers.IntegerField()


class GatewayUsageFilters(TeamListFilters):
    lookups = {
        "from": "at__gte",
        "to": "at__lt",
        "team": "team",
        "key": "key",
        "route": "route",
        "outcome": "outcome",
    }

    key = rest.VisibleUidField(
        visible=selectors.api_keys_visible, required=False, help_text="Uid of the key."
    )
    route = serializers.CharField(required=False, help_text="Model name.")
    outcome = serializers.ChoiceField(
        choices=["ok", "error", "aborted", "rejected"], required=False
    )

    def get_fields(self) -> dict[str, Any]:
        """With ``from``, which Python does not let a class declare."""
        return {
            "from": serializers.DateTimeField(
                required=False, help_text="Return requests at this time or later."
            ),
            "to": serializers.DateTimeField(
                required=False, help_text="Return requests before this time."
            ),
            **super().get_fields(),
        }


class GatewayPollQuery(rest.QuerySerializer):
    after = serializers.IntegerField(default=0, min_value=0, max_value=2**63 - 1)
    wait = serializers.IntegerField(default=0, min_value=0, max_value=20)


class GatewayCallSerializer(rest.StrictSerializer[Any]):
    """One request, as a gateway tells it."""

    at = serializers.DateTimeField()
    key = serializers.CharField(max_length=32, allow_null=True)
    route = serializers.CharField(max_length=80, allow_null=True, allow_blank=True)
    backend = serializers.CharField(max_length=32, allow_null=True, allow_blank=True)
    operation = serializers.CharField(max_length=20)
    status = serializers.IntegerField(min_value=0, max_value=32767)
    outcome = serializers.CharField(max_length=20)
    prompt_tokens = serializers.IntegerField(min_value=0, max_value=rest.LARGEST_INTEGER)
    completion_tokens = serializers.IntegerField(min_value=0, max_value=rest.LARGEST_INTEGER)
    duration_ms = serializers.FloatField(min_value=0)
    first_token_ms = serializers.FloatField(min_value=0, allow_null=True)

    def validate_at(self, value: datetime) -> str:
        return value.isoformat()


class UsageBatchSerializer(rest.StrictSerializer[Any]):
    gateway = serializers.CharField(max_length=80)
    sequence = serializers.IntegerField(min_value=0, max_value=2**63 - 1)
    records = GatewayCallSerializer(many=True)
