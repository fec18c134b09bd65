from typing import Literal

QueueState = Literal["closed", "draining", "open"]

QUEUE_STATE_VALUES: set[QueueState] = {
    "closed",
    "draining",
    "open",
}


def check_queue_state(value: str) -> QueueState:
    if value in QUEUE_STATE_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {QUEUE_STATE_VALUES!r}")
