from __future__ import annotations

from django.urls import path

from apps.jobs.web import charts, engines, job_list, job_page, logs, submissions

_NEW = submissions.job_submission

urlpatterns = [
    path("engines", engines.engines, name="engines"),
    path("engines/<str:name>", engines.engine, name="engine"),
    path("jobs", job_list.jobs, name="jobs"),
    path("jobs/cancel", job_list.jobs_cancel, name="jobs-cancel"),
    path("jobs/filters", job_list.filter_save, name="job-filter-save"),
    path("jobs/filters/<str:uid>", job_list.filter_change, name="job-filter-change"),
    path("jobs/compare", charts.job_compare, name="job-compare"),
    path("jobs/compare/curve", charts.job_compare_curve, name="job-compare-curve"),
    path("jobs/new", submissions.job_new, name="job-new"),
    path("jobs/new/finetune", _NEW, {"kind": "finetune"}, name="job-new-finetune"),
    path("jobs/new/evaluate", _NEW, {"kind": "evaluate"}, name="job-new-evaluate"),
    path("jobs/new/quantize", _NEW, {"kind": "quantize"}, name="job-new-quantize"),
    path("jobs/new/script", _NEW, {"kind": "script"}, name="job-new-script"),
    path("jobs/new/<str:kind>/rendered", submissions.job_render, name="job-render"),
    path("jobs/new/<str:kind>/check", submissions.job_check, name="job-check"),
    path("jobs/<str:uid>", job_page.job, name="job"),
    path("jobs/<str:uid>/cancel", job_page.job_cancel, name="job-cancel"),
    path("jobs/<str:uid>/retry", job_page.job_retry, name="job-retry"),
    path("jobs/<str:uid>/curve/<str:chart>", charts.job_curve, name="job-curve"),
    path("jobs/<str:uid>/log", logs.job_log, name="job-log"),
    path("jobs/<str:uid>/files", job_page.job_files, name="job-files"),
    path("jobs/<str:uid>/files/<path:path>", job_page.job_file, name="job-file"),
]
