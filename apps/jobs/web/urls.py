from __future__ import annotations

from django.urls import path

from apps.jobs.web import charts, engines, job_list, job_page, job_submission, logs

_NEW = job_submission.job_submission

urlpatterns = [
    path("engines", engines.engine_list, name="engines"),
    path("engines/<str:name>", engines.engine_detail, name="engine"),
    path("jobs", job_list.job_list_page, name="jobs"),
    path("jobs/cancel", job_list.jobs_cancel, name="jobs-cancel"),
    path("jobs/filters", job_list.filter_save, name="job-filter-save"),
    path("jobs/filters/<str:uid>", job_list.job_filter_change, name="job-filter-change"),
    path("jobs/compare", charts.job_comparison_page, name="job-compare"),
    path("jobs/compare/curve", charts.job_compare_curve, name="job-compare-curve"),
    path("jobs/new", job_submission.job_kind_selection_page, name="job-new"),
    path("jobs/new/finetune", _NEW, {"kind": "finetune"}, name="job-new-finetune"),
    path("jobs/new/evaluate", _NEW, {"kind": "evaluate"}, name="job-new-evaluate"),
    path("jobs/new/quantize", _NEW, {"kind": "quantize"}, name="job-new-quantize"),
    path("jobs/new/script", _NEW, {"kind": "script"}, name="job-new-script"),
    path("jobs/new/<str:kind>/rendered", job_submission.job_launch_preview, name="job-render"),
    path("jobs/new/<str:kind>/check", job_submission.job_form_check, name="job-check"),
    path("jobs/<str:uid>", job_page.job_detail, name="job"),
    path("jobs/<str:uid>/cancel", job_page.job_cancel, name="job-cancel"),
    path("jobs/<str:uid>/retry", job_page.job_retry, name="job-retry"),
    path("jobs/<str:uid>/curve/<str:chart>", charts.job_curve, name="job-curve"),
    path("jobs/<str:uid>/log", logs.job_log, name="job-log"),
    path("jobs/<str:uid>/files", job_page.job_files, name="job-files"),
    path("jobs/<str:uid>/files/<path:path>", job_page.job_output_file_download, name="job-file"),
]
