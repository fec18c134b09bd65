"""REST API of datasets, models, evaluations and artifacts, and gate overrides of quantized versions."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.db.models import QuerySet
from django.http import FileResponse
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework import mixins, status
from rest_framework.decorators import action
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import CharField

from apps.accounts import selectors as accounts
from apps.accounts.api.authentication import acting_user
from apps.accounts.api.idempotency import idempotency_key_schema, idempotent
from apps.accounts.models import Team
from apps.models import selectors
from apps.models.api import serializers
from apps.models.api.serializers import ModelVersionDetailSerializer
from apps.models.models import (
    Artifact,
    Dataset,
    DatasetVersion,
    Evaluation,
    ModelLine,
    ModelVersion,
)
from apps.models.services import dataset_and_model_changes as changes
from apps.models.services import datasets, hub_imports, model_versions
from controlplane.domain.common.permissions import Permission, Scope
from controlplane.web.downloads import file_download
from controlplane.web.rest import (
    BoundedJSONParser,
    BoundedMultiPartParser,
    IgnoreAcceptHeaderNegotiation,
    ResourceViewSet,
    StrictSerializer,
    supports_dry_run,
)


class GateOverrideReasonSerializer(StrictSerializer[Any]):
    reason = CharField(
        max_length=1000, help_text="Reason, stored with the version and in the audit log."
    )


class GateOverrideActionsMixin(ResourceViewSet[ModelVersion]):
    """The two decisions that a person can take about a quantized version."""

    @extend_schema(
        summary="Accept a quantized version that exceeds its tolerance",
        tags=["models"],
        request=GateOverrideReasonSerializer,
        responses=ModelVersionDetailSerializer,
    )
    @idempotent
    @action(detail=True, methods=["post"])
    def accept(self, request: Request, uid: str) -> Response:
        return self._override_gate(request, model_versions.model_version_accept)

    @extend_schema(
        summary="Reject a quantized version",
        description="New revisions cannot use it; running deployments continue.",
        tags=["models"],
        request=GateOverrideReasonSerializer,
        responses=ModelVersionDetailSerializer,
    )
    @idempotent
    @action(detail=True, methods=["post"])
    def reject(self, request: Request, uid: str) -> Response:
        return self._override_gate(request, model_versions.model_version_reject)

    def _override_gate(self, request: Request, decide: model_versions.GateOverride) -> Response:
        version = self.get_object()
        accounts.require_permission(request.user, Permission.CONTRIBUTE, team=version.line.team)
        given = self.validated_body(GateOverrideReasonSerializer)
        decide(version=version, actor=acting_user(request), **given)
        return Response(self.get_serializer(self.get_object()).data)


DOWNLOAD = {(200, "application/octet-stream"): OpenApiTypes.BINARY}
REPORT = "report.json"


@extend_schema_view(
    list=extend_schema(
        summary="Datasets", tags=["datasets"], parameters=[serializers.DatasetFilters]
    ),
    retrieve=extend_schema(summary="A dataset", tags=["datasets"]),
)
class DatasetViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, ResourceViewSet[Dataset]):
    token_scope = Scope.MODELS
    serializer_class = serializers.DatasetSerializer
    parser_classes = (BoundedMultiPartParser,)
    queries = {"list": serializers.DatasetFilters}

    def get_queryset(self) -> QuerySet[Dataset]:
        return selectors.datasets_with_versions(self.request.user)

    def get_parsers(self) -> list[BaseParser]:
        # Only uploads are forms.
        if getattr(self.request, "method", "") == "PATCH":
            return [BoundedJSONParser()]
        return super().get_parsers()

    @extend_schema(
        summary="Upload a file as a new dataset or version",
        description=(
            "The file is stored as a whole or refused with its invalid rows (422). A file with the same "
            "rows as an existing version is refused with that version (409)."
        ),
        tags=["datasets"],
        request=serializers.DatasetUploadSerializer,
        responses={201: serializers.DatasetVersionDetailSerializer},
    )
    @supports_dry_run
    @idempotent
    def create(self, request: Request) -> Response:
        given = self.validated_body(serializers.DatasetUploadSerializer)
        accounts.require_permission(request.user, Permission.CONTRIBUTE, team=given["team"])
        file = given.pop("file")
        version = datasets.dataset_upload(
            actor=acting_user(request), stream=file.file, filename=file.name, **given
        )
        body = serializers.DatasetVersionDetailSerializer(version).data
        return Response(body, status=status.HTTP_201_CREATED)

    @extend_schema(
        summary="Change a dataset",
        description="Omitted fields are not changed.",
        tags=["datasets"],
        request=serializers.DatasetChangeSerializer,
        responses=serializers.DatasetSerializer,
    )
    @supports_dry_run
    def partial_update(self, request: Request, uid: str) -> Response:
        changes.dataset_change(
            dataset=self._changeable_dataset(),
            actor=acting_user(request),
            **self.validated_body(serializers.DatasetChangeSerializer),
        )
        return Response(self.get_serializer(self.get_object()).data)

    @extend_schema(
        summary="Delete a dataset with its versions",
        description="Frees the name. Refused (409) while jobs or pipelines that have not ended use a version, "
        "or one is pinned. Restoring a version within 7 days restores the dataset.",
        tags=["datasets"],
        responses={204: None},
    )
    @supports_dry_run
    def destroy(self, request: Request, uid: str) -> Response:
        changes.dataset_delete(
            dataset=self._changeable_dataset(), actor=acting_user(request), at=timezone.now()
        )
        return Response(status=status.HTTP_204_NO_CONTENT)

    def _changeable_dataset(self) -> Dataset:
        dataset = self.get_object()
        accounts.require_permission(self.request.user, Permission.CONTRIBUTE, team=dataset.team)
        return dataset

    @extend_schema(
        summary="Check a file without storing it",
        description="Returns a preview and statistics, or the invalid rows (422).",
        tags=["datasets"],
        request=serializers.DatasetInspectRequestSerializer,
        responses=serializers.DatasetInspectionSerializer,
    )
    @action(detail=False, methods=["post"])
    def inspect(self, request: Request) -> Response:
        given = self.validated_body(serializers.DatasetInspectRequestSerializer)
        file = given["file"]
        inspection = datasets.dataset_inspect(
            stream=file.file, filename=file.name, columns=given["columns"]
        )
        columns = {part: name for part, name in asdict(inspection.columns).items() if name}
        return Response(
            {
                "columns": columns,
                "rows": inspection.rows,
                "splits_given": inspection.splits_given,
                "content_hash": inspection.digest,
                "statistics": datasets.dataset_statistics_json(inspection),
                "preview": [asdict(row) for row in inspection.preview],
            }
        )


@extend_schema_view(
    list=extend_schema(
        summary="Dataset versions",
        tags=["datasets"],
        parameters=[serializers.DatasetVersionFilters],
    ),
    retrieve=extend_schema(
        summary="A dataset version with its first rows",
        tags=["datasets"],
        responses=serializers.DatasetVersionDetailSerializer,
    ),
)
class DatasetVersionViewSet(
    mixins.ListModelMixin, mixins.RetrieveModelMixin, ResourceViewSet[DatasetVersion]
):
    token_scope = Scope.MODELS
    queries = {"list": serializers.DatasetVersionFilters, "rows": serializers.RowsQuery}

    def get_queryset(self) -> QuerySet[DatasetVersion]:
        return selectors.dataset_versions_visible(self.request.user)

    def get_serializer_class(self) -> type[serializers.DatasetVersionSerializer]:
        if self.action == "retrieve":
            return serializers.DatasetVersionDetailSerializer
        return serializers.DatasetVersionSerializer

    @extend_schema(
        summary="Rows of a split as JSON Lines",
        tags=["datasets"],
        parameters=[serializers.RowsQuery],
        responses=DOWNLOAD,
    )
    @action(detail=True, content_negotiation_class=IgnoreAcceptHeaderNegotiation)
    def rows(self, request: Request, uid: str) -> FileResponse:
        version = self.get_object()
        path = f"{self.query['split']}.jsonl"
        stream, size = selectors.artifact_file(version.artifact, path)
        name = f"{version.dataset.name}-v{version.number}-{path}"
        return file_download(stream, size=size, filename=name)


@extend_schema_view(
    list=extend_schema(
        summary="Models", tags=["models"], parameters=[serializers.ModelLineFilters]
    ),
    retrieve=extend_schema(summary="A model", tags=["models"]),
)
class ModelViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, ResourceViewSet[ModelLine]):
    """Named series of versions."""

    token_scope = Scope.MODELS
    serializer_class = serializers.ModelLineSerializer
    queries = {"list": serializers.ModelLineFilters}

    def get_queryset(self) -> QuerySet[ModelLine]:
        return selectors.model_lines_visible(self.request.user)

    @extend_schema(
        summary="Change a model",
        description="Omitted fields are not changed. A model without a team is changed by administrators of the "
        "company.",
        tags=["models"],
        request=serializers.ModelChangeSerializer,
        responses=serializers.ModelLineSerializer,
    )
    @supports_dry_run
    def partial_update(self, request: Request, uid: str) -> Response:
        line = self._changeable_line()
        given = self.validated_body(serializers.ModelChangeSerializer)
        owner = (given.pop("team"),) if "team" in given else None
        if owner is not None and owner[0] != line.team:
            accounts.require_permission(request.user, Permission.CONTRIBUTE, team=None)
        changes.model_change(
            line=line, actor=acting_user(request), owner=owner, at=timezone.now(), **given
        )
        return Response(self.get_serializer(self.get_object()).data)

    @extend_schema(
        summary="Delete a model with its versions",
        description="Frees the name. Refused (409) while jobs, deployments or pipelines use a version, another "
        "model is an adapter of one, one is pinned, or an import is in progress. Restoring a version within "
        "7 days restores the model.",
        tags=["models"],
        responses={204: None},
    )
    @supports_dry_run
    def destroy(self, request: Request, uid: str) -> Response:
        changes.model_delete(
            line=self._changeable_line(), actor=acting_user(request), at=timezone.now()
        )
        return Response(status=status.HTTP_204_NO_CONTENT)

    def _changeable_line(self) -> ModelLine:
        line = self.get_object()
        accounts.require_permission(self.request.user, Permission.CONTRIBUTE, team=line.team)
        return line


@extend_schema_view(
    list=extend_schema(
        summary="Model versions", tags=["models"], parameters=[serializers.ModelVersionFilters]
    ),
    retrieve=extend_schema(
        summary="A model version",
        tags=["models"],
        responses=serializers.ModelVersionDetailSerializer,
    ),
)
class ModelVersionViewSet(
    mixins.ListModelMixin, mixins.RetrieveModelMixin, GateOverrideActionsMixin
):
    token_scope = Scope.MODELS
    queries = {"list": serializers.ModelVersionFilters}

    def get_queryset(self) -> QuerySet[ModelVersion]:
        return selectors.model_versions_visible(self.request.user)

    def get_serializer_class(self) -> type[serializers.ModelVersionSerializer]:
        if self.action in ("list", "lineage"):
            return serializers.ModelVersionSerializer
        return serializers.ModelVersionDetailSerializer

    def get_serializer_context(self) -> dict[str, Any]:
        teams = accounts.roles_by_team(self.request.user).keys()
        return {**super().get_serializer_context(), "teams": teams}

    @extend_schema(
        summary="Lineage of a model version",
        description="From the version to its first base, or to the first version that is not "
        "visible to you.",
        tags=["models"],
        responses=serializers.ModelVersionSerializer(many=True),
    )
    @action(detail=True, pagination_class=None)
    def lineage(self, request: Request, uid: str) -> Response:
        chain = selectors.model_version_ancestors(self.get_object(), user=request.user)
        return Response(self.get_serializer(chain, many=True).data)

    @extend_schema(
        summary="Register a folder on the server as a model version",
        description="The folder is validated immediately and copied in the background.",
        tags=["models"],
        request=serializers.FolderImportRequestSerializer,
        responses={201: serializers.ModelVersionDetailSerializer},
    )
    @idempotent
    @action(detail=False, methods=["post"], url_path="import", url_name="import")
    def import_folder(self, request: Request) -> Response:
        given = self.validated_body(serializers.FolderImportRequestSerializer)
        accounts.require_permission(request.user, Permission.CONTRIBUTE, team=given["team"])
        version = model_versions.model_version_import(actor=acting_user(request), **given)
        return Response(self.get_serializer(version).data, status=status.HTTP_201_CREATED)

    @extend_schema(
        summary="Import a repository of a model hub as a model version",
        description="The repository is checked immediately. Its files are downloaded in the background; "
        "interrupted downloads resume.",
        tags=["models"],
        request=serializers.HubImportRequestSerializer,
        responses={201: serializers.ModelVersionDetailSerializer},
    )
    @idempotency_key_schema
    @action(detail=False, methods=["post"])
    def fetch(self, request: Request) -> Response:
        given = self.validated_body(serializers.HubImportRequestSerializer)
        team, name = given.pop("team"), given.pop("name")
        accounts.require_permission(request.user, Permission.CONTRIBUTE, team=team)
        # The hub is asked before the transaction that keeps a key begins.
        return self._import_from_hub(request, team, name, hub_imports.hub_lookup(**given))

    @idempotent
    def _import_from_hub(
        self, request: Request, team: Team, name: str, lookup: hub_imports.HubLookup
    ) -> Response:
        version = hub_imports.hub_import_request(
            actor=acting_user(request), team=team, name=name, lookup=lookup
        )
        return Response(self.get_serializer(version).data, status=status.HTTP_201_CREATED)

    @extend_schema(
        summary="Cancel an import from a model hub",
        description="Downloaded files are kept for a retry.",
        tags=["models"],
        request=None,
        responses=serializers.ModelVersionDetailSerializer,
    )
    @idempotent
    @action(detail=True, methods=["post"])
    def cancel(self, request: Request, uid: str) -> Response:
        version = self.get_object()
        accounts.require_permission(request.user, Permission.CONTRIBUTE, team=version.line.team)
        hub_imports.hub_import_cancel(
            version=version, actor=acting_user(request), at=timezone.now()
        )
        return Response(self.get_serializer(version).data)

    @extend_schema(
        summary="Folders that can be registered",
        tags=["models"],
        responses=serializers.ImportFolderSerializer(many=True),
    )
    @action(detail=False, pagination_class=None)
    def folders(self, request: Request) -> Response:
        return Response(selectors.importable_folders())

    @extend_schema(
        summary="Retry a failed import",
        tags=["models"],
        request=None,
        responses=serializers.ModelVersionDetailSerializer,
    )
    @idempotent
    @action(detail=True, methods=["post"])
    def retry(self, request: Request, uid: str) -> Response:
        version = self.get_object()
        accounts.require_permission(request.user, Permission.CONTRIBUTE, team=version.line.team)
        model_versions.model_version_retry(
            version=version, actor=acting_user(request), at=timezone.now()
        )
        return Response(self.get_serializer(version).data)


@extend_schema_view(
    list=extend_schema(
        summary="Evaluations", tags=["models"], parameters=[serializers.EvaluationFilters]
    ),
    retrieve=extend_schema(summary="An evaluation", tags=["models"]),
)
class EvaluationViewSet(
    mixins.ListModelMixin, mixins.RetrieveModelMixin, ResourceViewSet[Evaluation]
):
    token_scope = Scope.MODELS
    serializer_class = serializers.EvaluationSerializer
    queries = {"list": serializers.EvaluationFilters}

    def get_queryset(self) -> QuerySet[Evaluation]:
        return selectors.evaluations_visible(self.request.user)

    @extend_schema(summary="Evaluation report as JSON", tags=["models"], responses=DOWNLOAD)
    @action(detail=True, content_negotiation_class=IgnoreAcceptHeaderNegotiation)
    def report(self, request: Request, uid: str) -> FileResponse:
        evaluation = self.get_object()
        stream, size = selectors.artifact_file(evaluation.artifact, REPORT)
        return file_download(stream, size=size, filename=f"evaluation-{uid[:8]}.json")


@extend_schema_view(retrieve=extend_schema(summary="An artifact", tags=["models"]))
class ArtifactViewSet(mixins.RetrieveModelMixin, ResourceViewSet[Artifact]):
    """Immutable files: of datasets, models, reports, code and what scripts left."""

    token_scope = Scope.MODELS
    serializer_class = serializers.ArtifactSerializer

    def get_queryset(self) -> QuerySet[Artifact]:
        return selectors.artifacts_visible(self.request.user)

    @extend_schema(
        summary="One file of an artifact",
        tags=["models"],
        parameters=[OpenApiParameter("path", str, OpenApiParameter.PATH)],
        responses=DOWNLOAD,
    )
    @action(
        detail=True,
        url_path="files/(?P<path>.+)",
        content_negotiation_class=IgnoreAcceptHeaderNegotiation,
    )
    def files(self, request: Request, uid: str, path: str) -> FileResponse:
        stream, size = selectors.artifact_file(self.get_object(), path)
        return file_download(stream, size=size, filename=path.rpartition("/")[2])
