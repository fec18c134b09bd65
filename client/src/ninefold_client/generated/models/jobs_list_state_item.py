from typing import Literal

JobsListStateItem = Literal["cancelled", "failed", "running", "succeeded", "waiting"]

JOBS_LIST_STATE_ITEM_VALUES: set[JobsListStateItem] = {
    "cancelled",
    "failed",
    "running",
    "succeeded",
    "waiting",
}


def check_jobs_list_state_item(value: str) -> JobsListStateItem:
    if value in JOBS_LIST_STATE_ITEM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {JOBS_LIST_STATE_ITEM_VALUES!r}")
