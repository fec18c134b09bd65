from typing import Literal

DeploymentState = Literal["degraded", "ready", "starting", "stopped", "stopping", "updating"]

DEPLOYMENT_STATE_VALUES: set[DeploymentState] = {
    "degraded",
    "ready",
    "starting",
    "stopped",
    "stopping",
    "updating",
}


def check_deployment_state(value: str) -> DeploymentState:
    if value in DEPLOYMENT_STATE_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {DEPLOYMENT_STATE_VALUES!r}")
