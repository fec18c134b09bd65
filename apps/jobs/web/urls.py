from __future__ import annotations

from django.urls import path

from apps.jobs.web import (
    comparisons,
    curves,
    engines,
    filters,
    jobs,
    lists,
    logs,
    outputs,
    renderings,
    submissions,
)

_NEW = submissions.job_submission

urlpatterns = [
    path("engines", engines.engines, name="engines"),
    path("engines/<str:name>", engines.engine, name="engine"),
    path("jobs", lists.jobs, name="jobs"),
    path("jobs/cancel", lists.jobs_cancel, name="jobs-cancel"),
    path("jobs/filters", filters.filter_save, name="job-filter-save"),
    path("jobs/filters/<str:uid>", filters.filter_change, name="job-filter-change"),
    path("jobs/compare", comparisons.job_compare, name="job-compare"),
    path("jobs/compare/curve", comparisons.job_compare_curve, name="job-compare-curve"),
    path("jobs/new", submissions.job_new, name="job-new"),
    path("jobs/new/finetune", _NEW, {"kind": "finetune"}, name="job-new-finetune"),
    path("jobs/new/evaluate", _NEW, {"kind": "evaluate"}, name="job-new-evaluate"),
    path("jobs/new/quantize", _NEW, {"kind": "quantize"}, name="job-new-quantize"),
    path("jobs/new/script", _NEW, {"kind": "script"}, name="job-new-script"),
    path("jobs/new/<str:kind>/rendered", renderings.job_render, name="job-render"),
    path("jobs/new/<str:kind>/check", submissions.job_check, name="job-check"),
    path("jobs/<str:uid>", jobs.job, name="job"),
    path("jobs/<str:uid>/cancel", jobs.job_cancel, name="job-cancel"),
    path("jobs/<str:uid>/retry", jobs.job_retry, name="job-retry"),
    path("jobs/<str:uid>/curve/<str:chart>", curves.job_curve, name="job-curve"),
    path("jobs/<str:uid>/log", logs.job_log, name="job-log"),
    path("jobs/<str:uid>/files", outputs.job_files, name="job-files"),
    path("jobs/<str:uid>/files/<path:path>", outputs.job_file, name="job-file"),
]
