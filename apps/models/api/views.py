"""REST API of datasets, models, evaluations and artifacts, and gate overrides of quantized versions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from django.http import FileResponse
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import mixins, status
from rest_framework.decorators import action
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import CharField

from apps.accounts import selectors as accounts
from apps.accounts.api.authentication import acting_user
from apps.accounts.api.idempotency import idempotency_key_schema, idempotent, post_action
from apps.accounts.models import Team
from apps.models import selectors
from apps.models.api import serializers
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
from controlplane.web import rest
from controlplane.web.downloads import file_download


class GateOverrideReasonSerializer(rest.StrictSerializer[Any]):
    reason = CharField(
        max_length=1000, help_text="Reason, stored with the version and in the audit log."
    )


DOWNLOAD = {(200, "application/octet-stream"): OpenApiTypes.BINARY}
REPORT = "report.json"


class DatasetViewSet(rest.CollectionViewSet[Dataset]):
    tag = "datasets"
    summaries = {"list": "Datasets", "retrieve": "A dataset"}
    token_scope = Scope.MODELS
    serializer_class = serializers.DatasetSerializer
    parser_classes = (rest.BoundedMultiPartParser,)
    queries = {"list": serializers.DatasetFilters}
    visible = staticmethod(selectors.datasets_with_versions)

    def get_parsers(self) -> list[BaseParser]:
        # Only uploads are forms.
        if getattr(self.request, "method", "") == "PATCH":
            return [rest.BoundedJSONParser()]
        return super().get_parsers()

    @extend_schema(
        summary="Upload a file as a new dataset or version",
        description="The file is stored as a whole or refused with its invalid rows (422). A file with the same "
        "rows as an existing version is refused with that version (409).",
        request=serializers.DatasetUploadSerializer,
        responses={201: serializers.DatasetVersionDetailSerializer},
    )
    @rest.supports_dry_run
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
        request=serializers.DatasetChangeSerializer,
    )
    @rest.supports_dry_run
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
    )
    @rest.supports_dry_run
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


class DatasetVersionViewSet(rest.CollectionViewSet[DatasetVersion]):
    tag = "datasets"
    summaries = {"list": "Dataset versions", "retrieve": "A dataset version with its first rows"}
    token_scope = Scope.MODELS
    queries = {"list": serializers.DatasetVersionFilters, "rows": serializers.RowsQuery}
    visible = staticmethod(selectors.dataset_versions_visible)
    serializer_class = serializers.DatasetVersionSerializer
    detail_serializer_class = serializers.DatasetVersionDetailSerializer

    @extend_schema(summary="Rows of a split as JSON Lines", responses=DOWNLOAD)
    @action(detail=True, content_negotiation_class=rest.IgnoreAcceptHeaderNegotiation)
    def rows(self, request: Request, uid: str) -> FileResponse:
        version = self.get_object()
        path = f"{self.query['split']}.jsonl"
        stream, size = selectors.artifact_file(version.artifact, path)
        name = f"{version.dataset.name}-v{version.number}-{path}"
        return file_download(stream, size=size, filename=name)


class ModelViewSet(rest.CollectionViewSet[ModelLine]):
    """Named series of versions."""

    tag = "models"
    summaries = {"list": "Models", "retrieve": "A model"}
    token_scope = Scope.MODELS
    serializer_class = serializers.ModelLineSerializer
    queries = {"list": serializers.ModelLineFilters}
    visible = staticmethod(selectors.model_lines_visible)

    @extend_schema(
        summary="Change a model",
        description="Omitted fields are not changed. A model without a team is changed by administrators of the "
        "company.",
        request=serializers.ModelChangeSerializer,
    )
    @rest.supports_dry_run
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
    )
    @rest.supports_dry_run
    def destroy(self, request: Request, uid: str) -> Response:
        changes.model_delete(
            line=self._changeable_line(), actor=acting_user(request), at=timezone.now()
        )
        return Response(status=status.HTTP_204_NO_CONTENT)

    def _changeable_line(self) -> ModelLine:
        line = self.get_object()
        accounts.require_permission(self.request.user, Permission.CONTRIBUTE, team=line.team)
        return line


class ModelVersionViewSet(rest.CollectionViewSet[ModelVersion]):
    tag = "models"
    summaries = {"list": "Model versions", "retrieve": "A model version"}
    token_scope = Scope.MODELS
    queries = {"list": serializers.ModelVersionFilters}
    visible = staticmethod(selectors.model_versions_with_sources)
    serializer_class = serializers.ModelVersionSerializer
    detail_serializer_class = serializers.ModelVersionDetailSerializer

    def get_serializer_context(self) -> dict[str, Any]:
        teams = accounts.roles_by_team(self.request.user).keys()
        return {**super().get_serializer_context(), "teams": teams}

    @extend_schema(
        summary="Lineage of a model version",
        description="From the version to its first base, or to the first version that is not "
        "visible to you.",
        responses=serializers.ModelVersionSerializer(many=True),
    )
    @action(detail=True, pagination_class=None)
    def lineage(self, request: Request, uid: str) -> Response:
        chain = selectors.model_version_ancestors(self.get_object(), user=request.user)
        context = self.get_serializer_context()
        shown = serializers.ModelVersionSerializer(chain, many=True, context=context)
        return Response(shown.data)

    @post_action(
        "Accept a quantized version that exceeds its tolerance",
        request=GateOverrideReasonSerializer,
    )
    def accept(self, request: Request, uid: str) -> Response:
        return self._override_gate(model_versions.model_version_accept)

    @post_action(
        "Reject a quantized version",
        "New revisions cannot use it; running deployments continue.",
        request=GateOverrideReasonSerializer,
    )
    def reject(self, request: Request, uid: str) -> Response:
        return self._override_gate(model_versions.model_version_reject)

    def _override_gate(self, decide: Callable[..., object]) -> Response:
        version = self._changeable_version()
        given = self.validated_body(GateOverrideReasonSerializer)
        decide(version=version, actor=acting_user(self.request), **given)
        return Response(self.get_serializer(self.get_object()).data)

    def _changeable_version(self) -> ModelVersion:
        version = self.get_object()
        team = version.line.team
        accounts.require_permission(self.request.user, Permission.CONTRIBUTE, team=team)
        return version

    @post_action(
        "Register a folder on the server as a model version",
        "The folder is validated immediately and copied in the background.",
        request=serializers.FolderImportRequestSerializer,
        responses={201: serializers.ModelVersionDetailSerializer},
        detail=False,
        dry_run=True,
        url_path="import",
        url_name="import",
    )
    def import_folder(self, request: Request) -> Response:
        given = self.validated_body(serializers.FolderImportRequestSerializer)
        accounts.require_permission(request.user, Permission.CONTRIBUTE, team=given["team"])
        version = model_versions.model_version_import(actor=acting_user(request), **given)
        return Response(self.get_serializer(version).data, status=status.HTTP_201_CREATED)

    @extend_schema(
        summary="Import a repository of a model hub as a model version",
        description="The repository is checked immediately. Its files are downloaded in the background; "
        "interrupted downloads resume.",
        request=serializers.HubImportRequestSerializer,
        responses={201: serializers.ModelVersionDetailSerializer},
    )
    @rest.supports_dry_run
    @idempotency_key_schema
    @action(detail=False, methods=["post"])
    def fetch(self, request: Request) -> Response:
        given = self.validated_body(serializers.HubImportRequestSerializer)
        team, name = given.pop("team"), given.pop("name")
        accounts.require_permission(request.user, Permission.CONTRIBUTE, team=team)
        # The hub is asked before the transaction that keeps a key begins; a dry run keeps none.
        return self._import_from_hub(request, team, name, hub_imports.hub_lookup(**given))

    @idempotent
    def _import_from_hub(
        self, request: Request, team: Team, name: str, lookup: hub_imports.HubLookup
    ) -> Response:
        version = hub_imports.hub_import_request(
            actor=acting_user(request), team=team, name=name, lookup=lookup
        )
        return Response(self.get_serializer(version).data, status=status.HTTP_201_CREATED)

    @post_action(
        "Cancel an import from a model hub",
        "Downloaded files are kept for a retry.",
        responses=serializers.ModelVersionDetailSerializer,
    )
    def cancel(self, request: Request, uid: str) -> Response:
        version, actor = self._changeable_version(), acting_user(request)
        hub_imports.hub_import_cancel(version=version, actor=actor, at=timezone.now())
        return Response(self.get_serializer(version).data)

    @extend_schema(
        summary="Folders that can be registered",
        responses=serializers.ImportFolderSerializer(many=True),
    )
    @action(detail=False, pagination_class=None)
    def folders(self, request: Request) -> Response:
        return Response(selectors.importable_folders())

    @post_action("Retry a failed import", responses=serializers.ModelVersionDetailSerializer)
    def retry(self, request: Request, uid: str) -> Response:
        version, actor = self._changeable_version(), acting_user(request)
        model_versions.model_version_retry(version=version, actor=actor, at=timezone.now())
        return Response(self.get_serializer(version).data)


class EvaluationViewSet(rest.CollectionViewSet[Evaluation]):
    tag = "models"
    summaries = {"list": "Evaluations", "retrieve": "An evaluation"}
    token_scope = Scope.MODELS
    serializer_class = serializers.EvaluationSerializer
    queries = {"list": serializers.EvaluationFilters}
    visible = staticmethod(selectors.evaluations_visible)

    @extend_schema(summary="Evaluation report as JSON", responses=DOWNLOAD)
    @action(detail=True, content_negotiation_class=rest.IgnoreAcceptHeaderNegotiation)
    def report(self, request: Request, uid: str) -> FileResponse:
        evaluation = self.get_object()
        stream, size = selectors.artifact_file(evaluation.artifact, REPORT)
        return file_download(stream, size=size, filename=f"evaluation-{uid[:8]}.json")


class ArtifactViewSet(mixins.RetrieveModelMixin, rest.ResourceViewSet[Artifact]):
    """Immutable files: of datasets, models, reports, code and what scripts left."""

    tag = "models"
    summaries = {"retrieve": "An artifact"}
    token_scope = Scope.MODELS
    serializer_class = serializers.ArtifactSerializer
    visible = staticmethod(selectors.artifacts_visible)

    @extend_schema(
        summary="One file of an artifact",
        parameters=[OpenApiParameter("path", str, OpenApiParameter.PATH)],
        responses=DOWNLOAD,
    )
    @action(
        detail=True,
        url_path="files/(?P<path>.+)",
        content_negotiation_class=rest.IgnoreAcceptHeaderNegotiation,
    )
    def files(self, request: Request, uid: str, path: str) -> FileResponse:
        stream, size = selectors.artifact_file(self.get_object(), path)
        return file_download(stream, size=size, filename=path.rpartition("/")[2])
