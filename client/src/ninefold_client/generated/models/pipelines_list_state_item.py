from typing import Literal

PipelinesListStateItem = Literal["cancelled", "failed", "held", "running", "succeeded"]

PIPELINES_LIST_STATE_ITEM_VALUES: set[PipelinesListStateItem] = {
    "cancelled",
    "failed",
    "held",
    "running",
    "succeeded",
}


def check_pipelines_list_state_item(value: str) -> PipelinesListStateItem:
    if value in PIPELINES_LIST_STATE_ITEM_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {PIPELINES_LIST_STATE_ITEM_VALUES!r}"
    )
