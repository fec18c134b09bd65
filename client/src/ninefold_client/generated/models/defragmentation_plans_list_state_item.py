from typing import Literal

DefragmentationPlansListStateItem = Literal[
    "approved", "dismissed", "done", "expired", "failed", "proposed", "under_way"
]

DEFRAGMENTATION_PLANS_LIST_STATE_ITEM_VALUES: set[DefragmentationPlansListStateItem] = {
    "approved",
    "dismissed",
    "done",
    "expired",
    "failed",
    "proposed",
    "under_way",
}


def check_defragmentation_plans_list_state_item(value: str) -> DefragmentationPlansListStateItem:
    if value in DEFRAGMENTATION_PLANS_LIST_STATE_ITEM_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {DEFRAGMENTATION_PLANS_LIST_STATE_ITEM_VALUES!r}"
    )
