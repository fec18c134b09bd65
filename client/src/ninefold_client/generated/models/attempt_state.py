from typing import Literal

AttemptState = Literal[
    "admitted",
    "completing",
    "failed",
    "launched",
    "pending",
    "running",
    "stopped",
    "stopping",
    "succeeded",
]

ATTEMPT_STATE_VALUES: set[AttemptState] = {
    "admitted",
    "completing",
    "failed",
    "launched",
    "pending",
    "running",
    "stopped",
    "stopping",
    "succeeded",
}


def check_attempt_state(value: str) -> AttemptState:
    if value in ATTEMPT_STATE_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {ATTEMPT_STATE_VALUES!r}")
