"""Changes to jobs and attempts."""

from apps.jobs.services.chips import PREFERRED, chips_expand, engine_for
from apps.jobs.services.endings import Ending, attempt_end, attempts_end
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
    attempt_move,
    attempt_request_claim,
    job_cancel,
    job_move,
    job_retry,
    job_submit,
    jobs_cancel,
    log_keep,
    resumable,
)
from apps.jobs.services.renderings import SideBySide, job_rendered, request_rendered
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
    Settled,
    SpecRefused,
    job_check,
    job_settle,
    spec_of,
)
from apps.jobs.services.retries import (
    MemoryAnswer,
    may_be_broken_hardware,
    may_go_on,
    memory_answer,
    retry_decision,
)

__all__ = [
    "PREFERRED",
    "CancelOutcome",
    "Ending",
    "FilterRefused",
    "JobRequest",
    "MemoryAnswer",
    "ReportRefused",
    "Settled",
    "SideBySide",
    "SpecRefused",
    "attempt_create",
    "attempt_end",
    "attempt_move",
    "attempt_request_claim",
    "attempts_end",
    "check_output_path",
    "chips_expand",
    "engine_for",
    "file_receive",
    "file_record",
    "filter_default",
    "filter_delete",
    "filter_rename",
    "filter_save",
    "job_cancel",
    "job_check",
    "job_move",
    "job_rendered",
    "job_retry",
    "job_settle",
    "job_submit",
    "jobs_cancel",
    "log_keep",
    "manifest_record",
    "may_be_broken_hardware",
    "may_go_on",
    "memory_answer",
    "progress_record",
    "request_rendered",
    "resumable",
    "retry_decision",
    "spec_of",
]
