"""Datasets, models and their artifacts, to look at; an import that failed can be tried again."""

from __future__ import annotations

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone

from apps.accounts.admin import AuditedAdmin
from apps.accounts.models import User
from apps.models.models import (
    Artifact,
    Dataset,
    DatasetVersion,
    Evaluation,
    ModelLine,
    ModelVersion,
    ModelVersionTransition,
)
from apps.models.services import versions
from controlplane.domain.machines import IllegalTransition
from controlplane.web.admin import ReadOnlyAdmin, TransitionAdmin, shortened


@admin.register(Artifact)
class ArtifactAdmin(ReadOnlyAdmin[Artifact]):
    list_display = ("uid", "kind", "team", "size", "made_by", "created_at")
    list_filter = ("kind", "team")
    search_fields = ("uid", "made_by")
    list_select_related = ("team",)
    fields = ("uid", "kind", "team", "size", "made_by", "created_at", "file_list")
    readonly_fields = ("file_list",)

    @admin.display(description="files")
    def file_list(self, artifact: Artifact) -> str:
        return "\n".join(
            f"{file['path']} ({file['size']} bytes, {shortened(file['digest'].partition(':')[2])})"
            for file in artifact.files
        )


class DescribedAdmin(AuditedAdmin[Dataset | ModelLine]):
    """Only the description can be changed: names are in use."""

    addable = False


@admin.register(Dataset)
class DatasetAdmin(DescribedAdmin):
    list_display = ("name", "team", "created_by", "created_at")
    list_filter = ("team",)
    search_fields = ("name", "uid")
    list_select_related = ("team", "created_by")
    readonly_fields = ("uid", "team", "name", "created_by", "created_at")


@admin.register(DatasetVersion)
class DatasetVersionAdmin(ReadOnlyAdmin[DatasetVersion]):
    list_display = ("__str__", "row_count", "source_name", "created_by", "created_at")
    list_filter = ("dataset__team",)
    search_fields = ("dataset__name", "uid", "source_name")
    list_select_related = ("dataset", "created_by")
    fields = (
        "uid",
        "dataset",
        "number",
        "artifact",
        "hash_shortened",
        "source_name",
        "row_count",
        "statistics",
        "created_by",
        "created_at",
    )
    readonly_fields = ("hash_shortened",)

    @admin.display(description="content hash")
    def hash_shortened(self, version: DatasetVersion) -> str:
        return shortened(version.content_hash.rpartition(":")[2])


@admin.register(ModelLine)
class ModelLineAdmin(DescribedAdmin):
    list_display = ("name", "team", "created_at")
    list_filter = ("team",)
    search_fields = ("name", "uid")
    list_select_related = ("team",)
    readonly_fields = ("uid", "team", "name", "created_at")


@admin.register(ModelVersion)
class ModelVersionAdmin(ReadOnlyAdmin[ModelVersion]):
    list_display = ("__str__", "state", "architecture", "parameters", "base", "created_at")
    list_filter = ("state", "architecture", "line__team")
    search_fields = ("line__name", "uid", "job_uid", "source_path")
    list_select_related = ("line", "base__line")
    actions = ("retry",)

    @admin.action(description="Try the selected imports again", permissions=["operate"])
    def retry(self, request: HttpRequest, rows: QuerySet[ModelVersion]) -> None:
        for version in rows.select_related("line__team"):
            try:
                if isinstance(request.user, User):
                    versions.model_version_retry(
                        version=version, actor=request.user, at=timezone.now()
                    )
            except IllegalTransition as refusal:
                messages.error(request, f"{version}: {refusal}")
            else:
                messages.success(request, f"{version}: its import is tried again.")


@admin.register(Evaluation)
class EvaluationAdmin(ReadOnlyAdmin[Evaluation]):
    list_display = ("model_version", "dataset_version", "split", "metrics", "created_at")
    list_filter = ("split",)
    search_fields = ("model_version__line__name", "uid", "job_uid")
    list_select_related = ("model_version__line", "dataset_version__dataset")


admin.site.register(ModelVersionTransition, TransitionAdmin)
