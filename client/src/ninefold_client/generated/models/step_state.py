from typing import Literal

StepState = Literal["cancelled", "failed", "held", "running", "skipped", "succeeded", "waiting"]

STEP_STATE_VALUES: set[StepState] = {
    "cancelled",
    "failed",
    "held",
    "running",
    "skipped",
    "succeeded",
    "waiting",
}


def check_step_state(value: str) -> StepState:
    if value in STEP_STATE_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {STEP_STATE_VALUES!r}")
