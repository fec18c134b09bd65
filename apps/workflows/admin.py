"""Admin pages of pipelines and their steps; pipelines can be cancelled and retried."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from apps.accounts.admin import ScopedReadOnlyAdmin, ScopedTransitionAdmin
from apps.workflows import services
from apps.workflows.models import Pipeline, PipelineTransition, Step, StepTransition


@admin.register(Pipeline)
class PipelineAdmin(ScopedReadOnlyAdmin[Pipeline]):
    team_path = "team"
    list_display = ("name", "state", "state_reason", "team", "created_by", "created_at")
    list_filter = ("state", "team", "queue")
    search_fields = ("name", "uid", "created_by__username")
    list_select_related = ("team", "created_by")
    date_hierarchy = "created_at"
    actions = ("cancel", "retry")

    @admin.action(description="Cancel the selected pipelines", permissions=["operate"])
    def cancel(self, request: HttpRequest, pipelines: QuerySet[Pipeline]) -> None:
        self.apply_to_each(
            request,
            pipelines,
            lambda row, actor, at: services.pipeline_cancel(pipeline=row, actor=actor, at=at),
            done="is being cancelled.",
        )

    @admin.action(description="Retry the selected pipelines", permissions=["operate"])
    def retry(self, request: HttpRequest, pipelines: QuerySet[Pipeline]) -> None:
        self.apply_to_each(
            request,
            pipelines,
            lambda row, actor, at: services.pipeline_retry(pipeline=row, actor=actor, at=at),
            done="goes on.",
        )


@admin.register(Step)
class StepAdmin(ScopedReadOnlyAdmin[Step]):
    team_path = "pipeline__team"
    list_display = (
        "__str__",
        "kind",
        "state",
        "state_reason",
        "job",
        "deployment",
        "output_version",
    )
    list_filter = ("state", "kind", "gate_passed")
    search_fields = ("uid", "pipeline__uid", "pipeline__name", "job__uid")
    list_select_related = ("pipeline", "job", "deployment", "output_version__line")


admin.site.register(PipelineTransition, ScopedTransitionAdmin, team_path="entity__team")
admin.site.register(StepTransition, ScopedTransitionAdmin, team_path="entity__pipeline__team")
