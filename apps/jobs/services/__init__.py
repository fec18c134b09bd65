"""Changes to jobs and attempts."""

from apps.jobs.services.filters import (
    FilterRefused,
    filter_default,
    filter_delete,
    filter_rename,
    filter_save,
)
from apps.jobs.services.lives import (
    CancelOutcome,
    attempt_create,
    attempt_end,
    attempt_move,
    job_cancel,
    job_move,
    job_retry,
    job_submit,
    jobs_cancel,
    resumable,
)
from apps.jobs.services.reports import (
    ReportRefused,
    check_output_path,
    file_receive,
    file_record,
    manifest_record,
    progress_record,
)
from apps.jobs.services.requests import (
    JobRequest,
    SpecRefused,
    job_check,
    job_preview,
    spec_of,
)

__all__ = [
    "CancelOutcome",
    "FilterRefused",
    "JobRequest",
    "ReportRefused",
    "SpecRefused",
    "attempt_create",
    "attempt_end",
    "attempt_move",
    "check_output_path",
    "file_receive",
    "file_record",
    "filter_default",
    "filter_delete",
    "filter_rename",
    "filter_save",
    "job_cancel",
    "job_check",
    "job_move",
    "job_preview",
    "job_retry",
    "job_submit",
    "jobs_cancel",
    "manifest_record",
    "progress_record",
    "resumable",
    "spec_of",
]
