"""Services that change jobs and attempts."""

from apps.jobs.services.attempt_reports import (
    ReportRefused,
    StoredCheckpoint,
    UploadVerificationBusy,
    attempt_checkpoint_download,
    attempt_checkpoint_store,
    attempt_direct_upload_complete,
    attempt_direct_upload_start,
    attempt_file_receive,
    attempt_manifest_store,
    attempt_progress_store,
    attempt_upload_record,
)
from apps.jobs.services.attempt_termination import (
    AttemptTermination,
    attempt_end,
    attempts_end,
    can_requeue,
    may_be_hardware_failure,
    out_of_memory_retry,
    retry_decision,
)
from apps.jobs.services.job_requests import (
    JobRequest,
    ResolvedRequest,
    SpecRefused,
    job_request_check,
    job_request_resolve,
)
from apps.jobs.services.launch_comparison import (
    LaunchComparison,
    compare_launches_of_job,
    compare_launches_of_request,
)
from apps.jobs.services.lifecycle import (
    attempt_log_store,
    attempt_request_claim,
    attempt_transition,
    job_cancel,
    job_retry,
    job_submit,
    job_transition,
    jobs_cancel,
    resumable_attempt,
)
from apps.jobs.services.resource_resolution import (
    DEFAULT_ENGINE,
    default_engine_for_task,
    expand_chip_names,
)
from apps.jobs.services.saved_filters import (
    FilterRefused,
    saved_filter_delete,
    saved_filter_rename,
    saved_filter_save,
    saved_filter_set_default,
)
