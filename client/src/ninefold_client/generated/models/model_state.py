from typing import Literal

ModelState = Literal["deleted", "failed", "importing", "ready", "removed"]

MODEL_STATE_VALUES: set[ModelState] = {
    "deleted",
    "failed",
    "importing",
    "ready",
    "removed",
}


def check_model_state(value: str) -> ModelState:
    if value in MODEL_STATE_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {MODEL_STATE_VALUES!r}")
