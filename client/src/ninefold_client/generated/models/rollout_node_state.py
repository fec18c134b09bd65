from typing import Literal

RolloutNodeState = Literal["at_work", "done", "draining", "failed", "skipped", "testing", "waiting"]

ROLLOUT_NODE_STATE_VALUES: set[RolloutNodeState] = {
    "at_work",
    "done",
    "draining",
    "failed",
    "skipped",
    "testing",
    "waiting",
}


def check_rollout_node_state(value: str) -> RolloutNodeState:
    if value in ROLLOUT_NODE_STATE_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {ROLLOUT_NODE_STATE_VALUES!r}")
