from typing import Literal

ReplicaState = Literal[
    "admitted", "backoff", "draining", "pending", "ready", "starting", "stopped", "stopping"
]

REPLICA_STATE_VALUES: set[ReplicaState] = {
    "admitted",
    "backoff",
    "draining",
    "pending",
    "ready",
    "starting",
    "stopped",
    "stopping",
}


def check_replica_state(value: str) -> ReplicaState:
    if value in REPLICA_STATE_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {REPLICA_STATE_VALUES!r}")
