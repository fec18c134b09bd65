from __future__ import annotations

from django.urls import path

from apps.workflows.web import pipelines

urlpatterns = [
    path("pipelines", pipelines.pipelines, name="pipelines"),
    path("pipelines/new", pipelines.pipeline_new, name="pipeline-new"),
    path("pipelines/new/check", pipelines.pipeline_check, name="pipeline-check"),
    path("pipelines/<str:uid>", pipelines.pipeline, name="pipeline"),
    path("pipelines/<str:uid>/cancel", pipelines.pipeline_cancel, name="pipeline-cancel"),
    path("pipelines/<str:uid>/retry", pipelines.pipeline_retry, name="pipeline-retry"),
    path(
        "pipelines/<str:uid>/approve-anyway",
        pipelines.pipeline_approve_anyway,
        name="pipeline-approve-anyway",
    ),
]
