"""Selectors of jobs and attempts."""

from apps.jobs.selectors.engines import (
    engine_description,
    engine_task_support,
    installed_engine_descriptions,
)
from apps.jobs.selectors.jobs import (
    OWNER_KIND,
    WORK_KIND,
    attempt_by_number,
    attempt_by_token,
    attempt_claim,
    attempt_token,
    checkpoints_to_continue,
    job_attempts,
    job_outputs,
    jobs_by_state,
    jobs_visible,
    jobs_with_latest_attempt,
    latest_attempt,
    pending_claim,
    reload_attempt,
    saved_filters,
)
from apps.jobs.selectors.logs import attempt_log, attempt_log_from_cluster
from apps.jobs.selectors.progress import job_curve_points
from apps.jobs.selectors.secret_variables import masked_text, secret_masker, secret_values
