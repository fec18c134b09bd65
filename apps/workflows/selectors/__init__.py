"""Questions about pipelines."""

from apps.workflows.selectors.engines import task_of
from apps.workflows.selectors.pipelines import (
    Event,
    can_be_retried,
    deployment_live,
    events_of,
    held_step,
    input_of,
    pipelines_visible,
    steps_of,
)

__all__ = [
    "Event",
    "can_be_retried",
    "deployment_live",
    "events_of",
    "held_step",
    "input_of",
    "pipelines_visible",
    "steps_of",
    "task_of",
]
