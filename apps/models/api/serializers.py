from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiExample, extend_schema_field, extend_schema_serializer
from rest_framework import serializers

from apps.accounts import selectors as accounts
from apps.accounts.api.serializers import TeamListFilters, TeamOwnedSerializer
from apps.models import selectors
from apps.models.models import (
    Artifact,
    Dataset,
    DatasetVersion,
    Evaluation,
    HubImport,
    ModelLine,
    ModelVersion,
)
from apps.models.selectors.model_versions import hub_import_of
from controlplane.domain.common.reasons import Reason
from controlplane.domain.datasets import ColumnMapping, FileFormat, MessageRole, Schema, Split
from controlplane.domain.datasets.inspection import WarningKind
from controlplane.domain.registry.versions import ModelState
from controlplane.ports import adapter_registry
from controlplane.web import rest
from controlplane.web.reasons import ReasonSerializerField, reason_as_response_data
from controlplane.web.references import ReferenceNaming, register_reference_naming
from controlplane.web.type_schemas import NumbersField

register_reference_naming(
    ModelVersion,
    ReferenceNaming(
        noun=Reason("reference.noun.model_version", "model version"),
        name="line__name",
        owner="line__team__slug",
        version="number",
        example="qwen3-8b@3",
    ),
)
register_reference_naming(
    DatasetVersion,
    ReferenceNaming(
        noun=Reason("reference.noun.dataset_version", "dataset version"),
        name="dataset__name",
        owner="dataset__team__slug",
        version="number",
        example="tickets@2",
    ),
)
register_reference_naming(
    Dataset,
    ReferenceNaming(
        noun=Reason("reference.noun.dataset", "dataset"), owner="team__slug", example="tickets"
    ),
)


class ArtifactFileSerializer(serializers.Serializer[Any]):
    path = serializers.CharField()
    digest = serializers.CharField(help_text="sha256:<64 hex>")
    size = serializers.IntegerField(help_text="Size in bytes.")


class ArtifactSerializer(serializers.ModelSerializer[Artifact]):
    team = rest.ObjectReference(
        allow_null=True, help_text="Owning team; null: available to all teams."
    )
    files = ArtifactFileSerializer(many=True)

    class Meta:
        model = Artifact
        fields = ("uid", "kind", "team", "files", "size", "created_at")


class TextLengthsSerializer(serializers.Serializer[Any]):
    """In characters."""

    p50 = serializers.IntegerField()
    p95 = serializers.IntegerField()
    most = serializers.IntegerField()


class RowWarningSerializer(serializers.Serializer[Any]):
    kind = rest.EnumField(WarningKind)
    total = serializers.IntegerField()
    rows = serializers.ListField(
        child=serializers.IntegerField(),
        help_text="Row numbers in the file; only the first ones.",
    )


class DatasetStatisticsSerializer(serializers.Serializer[Any]):
    format = rest.EnumField(FileFormat)
    schema = rest.EnumField(Schema)
    rows_by_split = serializers.DictField(child=serializers.IntegerField())
    duplicates = serializers.IntegerField(
        help_text="Rows that are equal to an earlier row; they are kept."
    )
    ignored_columns = rest.TextListField()
    roles = serializers.DictField(child=serializers.IntegerField())
    prompt_characters = TextLengthsSerializer()
    answer_characters = TextLengthsSerializer()
    histogram = serializers.ListField(
        child=serializers.IntegerField(),
        help_text="Rows by number of characters: below 16, 32, 64 … 32768, and above.",
    )
    characters = serializers.IntegerField(
        required=False, help_text="Characters of all rows; absent for older versions."
    )
    warnings = RowWarningSerializer(
        many=True,
        required=False,
        help_text="Rows with warnings, which are kept; absent for older versions.",
    )


class ChatMessageSerializer(serializers.Serializer[Any]):
    role = rest.EnumField(MessageRole)
    content = serializers.CharField()


class PreviewRowSerializer(serializers.Serializer[Any]):
    row = serializers.IntegerField()
    split = rest.EnumField(Split)
    messages = ChatMessageSerializer(many=True)
    rejected = serializers.CharField(
        required=False, default="", help_text="Rejected answer of a preference row; else empty."
    )


class DatasetVersionBriefSerializer(serializers.ModelSerializer[DatasetVersion]):
    class Meta:
        model = DatasetVersion
        fields = ("uid", "number", "row_count", "created_at")


class DatasetSerializer(serializers.ModelSerializer[Dataset]):
    team = rest.ObjectReference()
    versions = DatasetVersionBriefSerializer(many=True, help_text="Newest first.")

    class Meta:
        model = Dataset
        fields = ("uid", "name", "team", "description", "created_at", "versions")


class DatasetChangeSerializer(rest.StrictSerializer[Any]):
    name = serializers.SlugField(
        required=False,
        max_length=80,
        help_text="New name. The old name can no longer be used as a reference.",
    )
    description = serializers.CharField(required=False, allow_blank=True, max_length=4000)


class DatasetVersionSerializer(serializers.ModelSerializer[DatasetVersion]):
    name = serializers.CharField(source="__str__")
    dataset = rest.ObjectReference()
    team = rest.ObjectReference(source="dataset.team")
    artifact = serializers.CharField(source="artifact.uid")
    created_by = serializers.CharField(source="created_by.username")
    statistics = DatasetStatisticsSerializer()

    class Meta:
        model = DatasetVersion
        fields: tuple[str, ...] = (
            "uid",
            "name",
            "dataset",
            "team",
            "number",
            "row_count",
            "content_hash",
            "source_name",
            "artifact",
            "created_by",
            "created_at",
            "statistics",
        )


class DatasetVersionDetailSerializer(DatasetVersionSerializer):
    preview = PreviewRowSerializer(many=True)

    class Meta(DatasetVersionSerializer.Meta):
        fields = (*DatasetVersionSerializer.Meta.fields, "preview")


class ColumnMappingSerializer(rest.StrictSerializer[Any]):
    """Which column plays which part; either instruction and output, or messages, or text."""

    instruction = serializers.CharField(required=False)
    input = serializers.CharField(required=False)
    output = serializers.CharField(required=False)
    system = serializers.CharField(required=False)
    messages = serializers.CharField(required=False)
    split = serializers.CharField(required=False)
    rejected = serializers.CharField(required=False, help_text="Column of the rejected answer.")
    text = serializers.CharField(required=False)


@extend_schema_field(ColumnMappingSerializer)
class ColumnMappingField(serializers.JSONField):
    """A JSON object in a form."""


class DatasetInspectRequestSerializer(rest.StrictSerializer[Any]):
    file = serializers.FileField(
        allow_empty_file=True, help_text="JSON Lines, a JSON array, or CSV; UTF-8."
    )
    columns = ColumnMappingField(
        required=False,
        default=None,
        help_text="Required only if the columns of the file have other than the default names.",
    )

    def validate_columns(self, value: Any) -> ColumnMapping | None:
        if value is None:
            return None
        columns = ColumnMappingSerializer(data=value)
        columns.is_valid(raise_exception=True)
        return ColumnMapping(**columns.validated_data)


class DatasetUploadSerializer(DatasetInspectRequestSerializer, TeamOwnedSerializer):
    name = serializers.SlugField(
        max_length=80, help_text="Name of the dataset. An existing name adds a version."
    )
    description = serializers.CharField(required=False, allow_blank=True, default="")


class DatasetInspectionSerializer(serializers.Serializer[Any]):
    columns = ColumnMappingSerializer()
    rows = serializers.IntegerField()
    splits_given = serializers.BooleanField(
        help_text="Whether the file contains the split of each row."
    )
    content_hash = serializers.CharField()
    statistics = DatasetStatisticsSerializer()
    preview = PreviewRowSerializer(many=True)


class ModelLineSerializer(serializers.ModelSerializer[ModelLine]):
    team = rest.ObjectReference(
        allow_null=True, help_text="Owning team; null: available to all teams."
    )

    class Meta:
        model = ModelLine
        fields = ("uid", "name", "team", "description", "created_at")


class ModelChangeSerializer(DatasetChangeSerializer):
    team = rest.VisibleUidField(
        visible=accounts.teams_visible,
        required=False,
        allow_null=True,
        help_text="Slug or uid of the owning team; null: available to all teams. Requires an administrator of the "
        "company. Refused while another team would lose a version that is in use.",
    )


class ImportSourceSerializer(serializers.Serializer[Any]):
    """A repository of a model hub, or a folder on the server; the fields of the other one are null."""

    hub = serializers.CharField(allow_null=True)
    repository = serializers.CharField(allow_null=True)
    revision = serializers.CharField(allow_null=True, help_text="Requested branch, tag or commit.")
    commit = serializers.CharField(
        allow_null=True, help_text="Commit that the revision was at the time of the request."
    )
    path = serializers.CharField(allow_null=True)


class ModelVersionSerializer(serializers.ModelSerializer[ModelVersion]):
    name = serializers.CharField(source="__str__")
    model = rest.ObjectReference(source="line")
    team = rest.ObjectReference(
        source="line.team", allow_null=True, help_text="Owning team; null: available to all teams."
    )
    artifact = serializers.CharField(source="artifact.uid", allow_null=True, default=None)
    import_source = serializers.SerializerMethodField(
        help_text="Where it was imported from; null if it was not imported."
    )
    #: A shared model may come from a model and a dataset that the reader may not know of.
    base = serializers.SerializerMethodField()
    dataset_version = serializers.SerializerMethodField()
    metrics = NumbersField(help_text="Final metrics of the training run.")

    class Meta:
        model = ModelVersion
        fields: tuple[str, ...] = (
            "uid",
            "name",
            "model",
            "team",
            "number",
            "state",
            "architecture",
            "context_length",
            "parameters",
            "scheme",
            "format",
            "acceptance",
            "acceptance_reason",
            "artifact",
            "source_path",
            "import_source",
            "base",
            "dataset_version",
            "job_uid",
            "attempt_uid",
            "metrics",
            "created_at",
        )

    @extend_schema_field(ImportSourceSerializer(allow_null=True))
    def get_import_source(self, version: ModelVersion) -> dict[str, str | None] | None:
        found = hub_import_of(version)
        if found is None and not version.source_path:
            return None
        names = ("hub", "repository", "revision", "commit")
        return {name: getattr(found, name, None) for name in names} | {
            "path": version.source_path or None
        }

    @extend_schema_field(rest.ObjectReference(allow_null=True, help_text="Base model version."))
    def get_base(self, version: ModelVersion) -> dict[str, Any] | None:
        base = version.base
        if base is None or base.line.team_id not in (None, *self.context["teams"]):
            return None
        return dict(rest.ObjectReference(base).data)

    @extend_schema_field(rest.ObjectReference(allow_null=True))
    def get_dataset_version(self, version: ModelVersion) -> dict[str, Any] | None:
        dataset_version = version.dataset_version
        if dataset_version is None or dataset_version.dataset.team_id not in self.context["teams"]:
            return None
        return dict(rest.ObjectReference(dataset_version).data)


class HubImportSerializer(serializers.ModelSerializer[HubImport]):
    class Meta:
        model = HubImport
        fields = (
            "hub",
            "repository",
            "revision",
            "commit",
            "size",
            "received",
            "spared",
            "error",
        )
        read_only_fields = fields


class ModelVersionDetailSerializer(ModelVersionSerializer):
    state_reason = serializers.SerializerMethodField(help_text="Reason of the state.")
    fetched = serializers.SerializerMethodField(
        help_text="Import from a model hub; null if it was not imported from a hub."
    )

    class Meta(ModelVersionSerializer.Meta):
        fields = (*ModelVersionSerializer.Meta.fields, "state_reason", "fetched")

    @extend_schema_field(HubImportSerializer(allow_null=True))
    def get_fetched(self, version: ModelVersion) -> dict[str, Any] | None:
        found = hub_import_of(version)
        return HubImportSerializer(found).data if found else None

    @extend_schema_field(ReasonSerializerField)
    def get_state_reason(self, version: ModelVersion) -> dict[str, Any]:
        last = version.transitions.last()
        return reason_as_response_data(last.reason if last else "")


@extend_schema_serializer(
    examples=[
        OpenApiExample(
            "A folder with config.json and safetensors",
            value={"name": "qwen2-tiny", "path": "/srv/models/ninefold-tiny-qwen2"},
            request_only=True,
        )
    ]
)
class FolderImportRequestSerializer(TeamOwnedSerializer):
    name = serializers.SlugField(
        max_length=80, help_text="Name of the model. An existing name adds a version."
    )
    path = serializers.CharField(
        max_length=1000, help_text="Folder below one of NINEFOLD_MODEL_ROOTS on the server."
    )


class HubImportRequestSerializer(TeamOwnedSerializer):
    name = serializers.SlugField(
        max_length=80, help_text="Name of the model. An existing name adds a version."
    )
    hub = serializers.ChoiceField(choices=adapter_registry.hub_names())
    repository = serializers.CharField(
        max_length=200, help_text="Owner and name of the repository, for example Qwen/Qwen3-8B."
    )
    revision = serializers.CharField(
        required=False,
        max_length=200,
        help_text="Branch, tag or commit. Default: the default branch of the hub, such as main.",
    )


class ImportFolderSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    path = serializers.CharField()


class EvaluationSerializer(serializers.ModelSerializer[Evaluation]):
    model_version = rest.ObjectReference()
    dataset_version = rest.ObjectReference()
    metrics = NumbersField()
    artifact = serializers.CharField(source="artifact.uid")

    class Meta:
        model = Evaluation
        fields = (
            "uid",
            "model_version",
            "dataset_version",
            "split",
            "metrics",
            "artifact",
            "job_uid",
            "attempt_uid",
            "created_at",
        )


class DatasetFilters(TeamListFilters):
    lookups = {"team": "team", "name": "name"}

    name = serializers.CharField(required=False)


class DatasetVersionFilters(TeamListFilters):
    lookups = {"team": "dataset__team", "dataset": "dataset"}

    dataset = rest.VisibleUidField(
        visible=selectors.datasets_visible, required=False, help_text="Name or uid of the dataset."
    )


class ModelLineFilters(TeamListFilters):
    lookups = {"team": "team", "name": "name"}

    name = serializers.CharField(required=False)


class ModelVersionFilters(TeamListFilters):
    lookups = {
        "team": "line__team",
        "model": "line__name",
        "state": "state__in",
        "job": "job_uid",
    }

    model = serializers.CharField(required=False, help_text="Name of the model.")
    state = serializers.MultipleChoiceField(
        choices=[(state.value, state.value) for state in ModelState], required=False
    )
    job = serializers.CharField(required=False, help_text="Uid of the job that created it.")


class EvaluationFilters(rest.ListFilters):
    lookups = {
        "model_version": "model_version",
        "dataset_version": "dataset_version",
        "job": "job_uid",
    }

    model_version = rest.VisibleUidField(
        visible=selectors.model_versions_visible,
        required=False,
        help_text="Model version as name@number, or its uid.",
    )
    dataset_version = rest.VisibleUidField(
        visible=selectors.dataset_versions_visible,
        required=False,
        help_text="Dataset version as name@number, or its uid.",
    )
    job = serializers.CharField(required=False, help_text="Uid of the job that created it.")


class RowsQuery(rest.QuerySerializer):
    split = rest.EnumField(Split, default=Split.TRAIN.value)
