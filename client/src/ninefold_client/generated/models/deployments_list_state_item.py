from typing import Literal

DeploymentsListStateItem = Literal[
    "degraded", "ready", "starting", "stopped", "stopping", "updating"
]

DEPLOYMENTS_LIST_STATE_ITEM_VALUES: set[DeploymentsListStateItem] = {
    "degraded",
    "ready",
    "starting",
    "stopped",
    "stopping",
    "updating",
}


def check_deployments_list_state_item(value: str) -> DeploymentsListStateItem:
    if value in DEPLOYMENTS_LIST_STATE_ITEM_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {DEPLOYMENTS_LIST_STATE_ITEM_VALUES!r}"
    )
