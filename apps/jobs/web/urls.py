from __future__ import annotations

from django.urls import path

from apps.jobs.web import jobs, progress, submissions

urlpatterns = [
    path("jobs", jobs.jobs, name="jobs"),
    path("jobs/new", submissions.job_new, name="job-new"),
    path(
        "jobs/new/finetune",
        submissions.job_submission,
        {"kind": "finetune"},
        name="job-new-finetune",
    ),
    path(
        "jobs/new/evaluate",
        submissions.job_submission,
        {"kind": "evaluate"},
        name="job-new-evaluate",
    ),
    path("jobs/new/script", submissions.job_submission, {"kind": "script"}, name="job-new-script"),
    path("jobs/new/<str:kind>/check", submissions.job_check, name="job-check"),
    path("jobs/<str:uid>", jobs.job, name="job"),
    path("jobs/<str:uid>/cancel", jobs.job_cancel, name="job-cancel"),
    path("jobs/<str:uid>/retry", jobs.job_retry, name="job-retry"),
    path("jobs/<str:uid>/curve", progress.job_curve, name="job-curve"),
    path("jobs/<str:uid>/log", progress.job_log, name="job-log"),
    path("jobs/<str:uid>/files", jobs.job_files, name="job-files"),
    path("jobs/<str:uid>/files/<path:path>", progress.job_file, name="job-file"),
]
