from typing import Literal

PipelineState = Literal["cancelled", "failed", "held", "running", "succeeded"]

PIPELINE_STATE_VALUES: set[PipelineState] = {
    "cancelled",
    "failed",
    "held",
    "running",
    "succeeded",
}


def check_pipeline_state(value: str) -> PipelineState:
    if value in PIPELINE_STATE_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {PIPELINE_STATE_VALUES!r}")
