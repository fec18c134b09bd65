"""Changes to pipelines and their steps."""

from apps.workflows.services.lives import (
    LONGEST_REASON,
    gate_wave,
    kinds_of,
    pipeline_cancel,
    pipeline_move,
    pipeline_retry,
    pipeline_submit,
    steps_require,
)
from apps.workflows.services.requests import PipelineRequest, StepRequest, pipeline_check
from apps.workflows.services.steps import (
    StepRefused,
    step_begin,
    step_fail,
    step_follow,
    step_stop,
)

__all__ = [
    "LONGEST_REASON",
    "PipelineRequest",
    "StepRefused",
    "StepRequest",
    "gate_wave",
    "kinds_of",
    "pipeline_cancel",
    "pipeline_check",
    "pipeline_move",
    "pipeline_retry",
    "pipeline_submit",
    "step_begin",
    "step_fail",
    "step_follow",
    "step_stop",
    "steps_require",
]
