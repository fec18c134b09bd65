from typing import Literal

RolloutState = Literal["cancelled", "done", "failed", "paused", "running"]

ROLLOUT_STATE_VALUES: set[RolloutState] = {
    "cancelled",
    "done",
    "failed",
    "paused",
    "running",
}


def check_rollout_state(value: str) -> RolloutState:
    if value in ROLLOUT_STATE_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {ROLLOUT_STATE_VALUES!r}")
