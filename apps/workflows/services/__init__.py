"""Services for pipelines and their steps."""

from apps.workflows.services.pipeline_steps import (
    StepRefused,
    step_begin,
    step_fail,
    step_observe,
    step_stop,
)
from apps.workflows.services.pipelines import (
    MAX_REASON_LENGTH,
    PipelineRequest,
    StepRequest,
    gate_override,
    pipeline_cancel,
    pipeline_check,
    pipeline_retry,
    pipeline_submit,
    pipeline_transition,
    step_kinds,
    steps_require_permissions,
)
