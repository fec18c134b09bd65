"""Questions about jobs and attempts."""

from apps.jobs.selectors.attempts import (
    OWNER_KIND,
    WORK_KIND,
    attempt_by_token,
    attempt_fresh,
    attempt_numbered,
    attempt_token,
    attempts_of,
    claim_of,
    latest_attempt,
)
from apps.jobs.selectors.curves import curve_of
from apps.jobs.selectors.engines import (
    EngineDescription,
    FieldDescription,
    engine_described,
    engine_tasks,
    engines,
)
from apps.jobs.selectors.jobs import (
    job_outputs,
    jobs_by_state,
    jobs_visible,
    jobs_with_newest_attempt,
    saved_filters,
    waiting_claim,
)
from apps.jobs.selectors.logs import attempt_log, cluster_log
from apps.jobs.selectors.secret_variables import masked_text, masker, secret_values

__all__ = [
    "OWNER_KIND",
    "WORK_KIND",
    "EngineDescription",
    "FieldDescription",
    "attempt_by_token",
    "attempt_fresh",
    "attempt_log",
    "attempt_numbered",
    "attempt_token",
    "attempts_of",
    "claim_of",
    "cluster_log",
    "curve_of",
    "engine_described",
    "engine_tasks",
    "engines",
    "job_outputs",
    "jobs_by_state",
    "jobs_visible",
    "jobs_with_newest_attempt",
    "latest_attempt",
    "masked_text",
    "masker",
    "saved_filters",
    "secret_values",
    "waiting_claim",
]
