"""Services for pipelines and their steps."""

from apps.workflows.services.pipelines import (
    MAX_REASON_LENGTH,
    PipelineRequest,
    StepRequest,
    gate_override,
    pipeline_cancel,
    pipeline_check,
    pipeline_move,
    pipeline_retry,
    pipeline_submit,
    step_kinds,
    steps_require_permissions,
)
from apps.workflows.services.steps import (
    StepRefused,
    step_begin,
    step_fail,
    step_observe,
    step_stop,
)

__all__ = [
    "MAX_REASON_LENGTH",
    "PipelineRequest",
    "StepRefused",
    "StepRequest",
    "gate_override",
    "pipeline_cancel",
    "pipeline_check",
    "pipeline_move",
    "pipeline_retry",
    "pipeline_submit",
    "step_begin",
    "step_fail",
    "step_kinds",
    "step_observe",
    "step_stop",
    "steps_require_permissions",
]
