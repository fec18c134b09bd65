"""Admin pages of pipelines and their steps; pipelines can be cancelled and retried."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone

from apps.accounts.admin import ScopedReadOnlyAdmin, ScopedTransitionAdmin
from apps.accounts.models import User
from apps.workflows import services
from apps.workflows.models import Pipeline, PipelineTransition, Step, StepTransition
from controlplane.domain.common.state_machine import IllegalTransition


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
        self._apply_to_each(request, pipelines, services.pipeline_cancel, "is being cancelled.")

    @admin.action(description="Retry the selected pipelines", permissions=["operate"])
    def retry(self, request: HttpRequest, pipelines: QuerySet[Pipeline]) -> None:
        self._apply_to_each(request, pipelines, services.pipeline_retry, "goes on.")

    def _apply_to_each(
        self,
        request: HttpRequest,
        pipelines: QuerySet[Pipeline],
        action: Callable[..., object],
        done: str,
    ) -> None:
        for pipeline in pipelines:
            try:
                if isinstance(request.user, User):
                    action(pipeline=pipeline, actor=request.user, at=timezone.now())
            except IllegalTransition as refusal:
                messages.error(request, f"{pipeline}: {refusal}")
            else:
                messages.success(request, f"{pipeline}: {done}")


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
