"""Read-only admin of jobs and attempts; jobs can be cancelled and retried."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from apps.accounts.admin import ScopedReadOnlyAdmin, ScopedTransitionAdmin
from apps.jobs import models, services
from controlplane.domain.common.state_machine import IllegalTransition
from controlplane.web.admin import shorten_digest


@admin.register(models.Job)
class JobAdmin(ScopedReadOnlyAdmin[models.Job]):
    team_path = "team"
    list_display = ("name", "kind", "state", "team", "created_by", "queue", "created_at")
    list_filter = ("state", "kind", "team", "queue")
    search_fields = ("name", "uid", "created_by__username", "output_name")
    list_select_related = ("team", "created_by", "queue")
    date_hierarchy = "created_at"
    actions = ("cancel", "retry")

    @admin.action(description="Cancel the selected jobs", permissions=["operate"])
    def cancel(self, request: HttpRequest, jobs: QuerySet[models.Job]) -> None:
        self.apply_to_each(
            request,
            jobs,
            lambda job, actor, at: services.job_cancel(job=job, actor=actor, at=at),
            done="is being cancelled.",
        )

    @admin.action(description="Retry the selected jobs", permissions=["operate"])
    def retry(self, request: HttpRequest, jobs: QuerySet[models.Job]) -> None:
        self.apply_to_each(
            request,
            jobs,
            lambda job, actor, at: services.job_retry(job=job, actor=actor, at=at),
            done="waits for cards again.",
            refusals=(IllegalTransition, services.SpecRefused),
        )


@admin.register(models.Attempt)
class AttemptAdmin(ScopedReadOnlyAdmin[models.Attempt]):
    team_path = "job__team"
    list_display = ("__str__", "state", "message", "cluster", "chip", "exit_cause", "created_at")
    list_filter = ("state", "exit_cause", "cluster", "chip")
    search_fields = ("uid", "job__uid", "job__name", "claim_uid")
    list_select_related = ("job", "cluster")
    exclude = ("log_digest", "manifest")


@admin.register(models.AttemptCheckpoint)
class AttemptCheckpointAdmin(ScopedReadOnlyAdmin[models.AttemptCheckpoint]):
    team_path = "attempt__job__team"
    list_display = ("attempt", "step", "size", "stored_at")
    search_fields = ("attempt__uid", "attempt__job__name")
    list_select_related = ("attempt__job",)


@admin.register(models.ProgressPoint)
class ProgressPointAdmin(ScopedReadOnlyAdmin[models.ProgressPoint]):
    team_path = "attempt__job__team"
    list_display = ("attempt", "step", "at", "values")
    search_fields = ("attempt__uid", "attempt__job__uid")
    list_select_related = ("attempt__job",)
    ordering = ("-id",)


@admin.register(models.SecretVariable)
class SecretVariableAdmin(ScopedReadOnlyAdmin[models.SecretVariable]):
    team_path = "job__team"
    list_display = ("name", "job")
    search_fields = ("name", "job__uid", "job__name")
    list_select_related = ("job",)
    exclude = ("value",)


@admin.register(models.AttemptUpload)
class AttemptUploadAdmin(ScopedReadOnlyAdmin[models.AttemptUpload]):
    team_path = "attempt__job__team"
    list_display = ("path", "attempt", "size", "digest_shortened")
    search_fields = ("path", "attempt__uid")
    list_select_related = ("attempt__job",)
    fields = ("attempt", "path", "digest_shortened", "size")
    readonly_fields = ("digest_shortened",)
    ordering = ("-id",)

    @admin.display(description="digest")
    def digest_shortened(self, file: models.AttemptUpload) -> str:
        return shorten_digest(file.digest.rpartition(":")[2])


@admin.register(models.UnfinishedUpload)
class UnfinishedUploadAdmin(ScopedReadOnlyAdmin[models.UnfinishedUpload]):
    team_path = "attempt__job__team"
    list_display = ("path", "attempt", "size", "started_at")
    search_fields = ("path", "attempt__uid")
    list_select_related = ("attempt__job",)
    # Whoever knows the reference and reaches the store may complete the upload.
    fields = ("attempt", "path", "sha256", "size", "started_at")
    ordering = ("-id",)


@admin.register(models.SavedFilter)
class SavedFilterAdmin(ScopedReadOnlyAdmin[models.SavedFilter]):
    """Saved filters of all users, for support by administrators of the company."""

    list_display = ("name", "owner", "query", "is_default")
    search_fields = ("name", "owner__username", "uid")
    list_select_related = ("owner",)


admin.site.register(models.JobTransition, ScopedTransitionAdmin, team_path="entity__team")
admin.site.register(models.AttemptTransition, ScopedTransitionAdmin, team_path="entity__job__team")
