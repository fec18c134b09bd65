"""Admin pages of datasets, models, artifacts and storage; failed imports can be retried."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from apps.accounts.admin import AuditedAdmin, ScopedReadOnlyAdmin, ScopedTransitionAdmin
from apps.models import models
from apps.models.services import model_versions
from controlplane.domain.common.resources import format_bytes
from controlplane.web.admin import shorten_digest


@admin.register(models.Artifact)
class ArtifactAdmin(ScopedReadOnlyAdmin[models.Artifact]):
    team_path = "team"
    list_display = ("uid", "kind", "team", "size", "created_by", "created_at", "removed_at")
    list_filter = ("kind", "team", ("removed_at", admin.EmptyFieldListFilter))
    search_fields = ("uid", "created_by")
    list_select_related = ("team",)
    fields = (
        "uid",
        "kind",
        "team",
        "size",
        "created_by",
        "created_at",
        "pinned_at",
        "deleted_at",
        "deleted_by",
        "deletion_reason",
        "removed_at",
        "file_list",
    )
    readonly_fields = ("file_list",)

    @admin.display(description="files")
    def file_list(self, artifact: models.Artifact) -> str:
        return "\n".join(
            f"{file['path']} ({file['size']} bytes, {shorten_digest(file['digest'].partition(':')[2])})"
            for file in artifact.files
        )


class DescriptionOnlyAdmin(AuditedAdmin[models.Dataset | models.ModelLine]):
    """Only the description can be changed, because names are referenced."""

    team_path = "team"
    addable = False


@admin.register(models.Dataset)
class DatasetAdmin(DescriptionOnlyAdmin):
    list_display = ("name", "team", "created_by", "created_at")
    list_filter = ("team",)
    search_fields = ("name", "uid")
    list_select_related = ("team", "created_by")
    readonly_fields = ("uid", "team", "name", "created_by", "created_at")


@admin.register(models.DatasetVersion)
class DatasetVersionAdmin(ScopedReadOnlyAdmin[models.DatasetVersion]):
    team_path = "dataset__team"
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
    def hash_shortened(self, version: models.DatasetVersion) -> str:
        return shorten_digest(version.content_hash.rpartition(":")[2])


@admin.register(models.ModelLine)
class ModelLineAdmin(DescriptionOnlyAdmin):
    list_display = ("name", "team", "created_at")
    list_filter = ("team",)
    search_fields = ("name", "uid")
    list_select_related = ("team",)
    readonly_fields = ("uid", "team", "name", "created_at")


@admin.register(models.ModelVersion)
class ModelVersionAdmin(ScopedReadOnlyAdmin[models.ModelVersion]):
    team_path = "line__team"
    list_display = ("__str__", "state", "architecture", "parameters", "base", "created_at")
    list_filter = ("state", "architecture", "line__team")
    search_fields = ("line__name", "uid", "job_uid", "source_path")
    list_select_related = ("line", "base__line")
    actions = ("retry",)

    @admin.action(description="Try the selected imports again", permissions=["operate"])
    def retry(self, request: HttpRequest, rows: QuerySet[models.ModelVersion]) -> None:
        self.apply_to_each(
            request,
            rows.select_related("line__team"),
            lambda version, actor, at: model_versions.model_version_retry(
                version=version, actor=actor, at=at
            ),
            done="its import is tried again.",
        )


@admin.register(models.Evaluation)
class EvaluationAdmin(ScopedReadOnlyAdmin[models.Evaluation]):
    team_path = "model_version__line__team"
    list_display = ("model_version", "dataset_version", "split", "metrics", "created_at")
    list_filter = ("split",)
    search_fields = ("model_version__line__name", "uid", "job_uid")
    list_select_related = ("model_version__line", "dataset_version__dataset")


@admin.register(models.StorageQuota)
class StorageQuotaAdmin(AuditedAdmin[models.StorageQuota]):
    """A team without a row has no limit."""

    team_path = "team"
    list_display = ("team", "formatted_limit")
    search_fields = ("team__name",)
    autocomplete_fields = ("team",)
    list_select_related = ("team",)
    # A limit, not a record: the audit trail keeps what it was.
    deletable = True

    @admin.display(description="limit", ordering="limit")
    def formatted_limit(self, quota: models.StorageQuota) -> str:
        return format_bytes(quota.limit)


@admin.register(models.RetentionRule)
class RetentionRuleAdmin(AuditedAdmin[models.RetentionRule]):
    """The row without a team applies to teams without rules of their own."""

    team_path = "team"
    list_display = (
        "__str__",
        "enabled",
        "keep_versions",
        "checkpoint_days",
        "failed_days",
        "log_days",
    )
    list_filter = ("enabled",)
    autocomplete_fields = ("team",)
    list_select_related = ("team",)
    deletable = True


@admin.register(models.CatalogModel)
class CatalogModelAdmin(ScopedReadOnlyAdmin[models.CatalogModel]):
    """Read-only: the data files are the source, loaded by ``catalog_load``."""

    list_display = ("key", "title", "family", "modality", "parameters", "withdrawn_at")
    list_filter = ("modality", "family", ("withdrawn_at", admin.EmptyFieldListFilter))
    search_fields = ("key", "title", "hf_repo", "modelscope_id")


@admin.register(models.CatalogCell)
class CatalogCellAdmin(ScopedReadOnlyAdmin[models.CatalogCell]):
    list_display = ("model", "task", "vendor", "engine", "status", "versions")
    list_filter = ("task", "vendor", "engine", "status")
    search_fields = ("model__key",)
    list_select_related = ("model",)


@admin.register(models.HubImport)
class HubImportAdmin(ScopedReadOnlyAdmin[models.HubImport]):
    team_path = "version__line__team"
    list_display = ("version", "hub", "repository", "revision", "received", "size", "error")
    list_filter = ("hub",)
    search_fields = ("repository", "version__uid")
    list_select_related = ("version__line",)


@admin.register(models.StorageRun)
class StorageRunAdmin(ScopedReadOnlyAdmin[models.StorageRun]):
    list_display = (
        "kind",
        "dry_run",
        "started_at",
        "ended_at",
        "examined",
        "set_aside",
        "removed",
        "removed_bytes",
        "error",
    )
    list_filter = ("kind", "dry_run")
    date_hierarchy = "started_at"


@admin.register(models.StorageMeasure)
class StorageMeasureAdmin(ScopedReadOnlyAdmin[models.StorageMeasure]):
    team_path = "team"
    list_display = ("owner_uid", "kind", "team", "size", "measured_at")
    list_filter = ("kind", "team")
    search_fields = ("owner_uid",)
    list_select_related = ("team",)


@admin.register(models.StoreSize)
class StoreSizeAdmin(ScopedReadOnlyAdmin[models.StoreSize]):
    list_display = ("counted_at", "blobs", "size", "set_aside")


admin.site.register(
    models.ModelVersionTransition, ScopedTransitionAdmin, team_path="entity__line__team"
)
