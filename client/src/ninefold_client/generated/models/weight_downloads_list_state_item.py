from typing import Literal

WeightDownloadsListStateItem = Literal[
    "cancelled", "failed", "pending", "running", "stopping", "succeeded"
]

WEIGHT_DOWNLOADS_LIST_STATE_ITEM_VALUES: set[WeightDownloadsListStateItem] = {
    "cancelled",
    "failed",
    "pending",
    "running",
    "stopping",
    "succeeded",
}


def check_weight_downloads_list_state_item(value: str) -> WeightDownloadsListStateItem:
    if value in WEIGHT_DOWNLOADS_LIST_STATE_ITEM_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {WEIGHT_DOWNLOADS_LIST_STATE_ITEM_VALUES!r}"
    )
