from typing import Literal

ModelVersionsListStateItem = Literal["deleted", "failed", "importing", "ready", "removed"]

MODEL_VERSIONS_LIST_STATE_ITEM_VALUES: set[ModelVersionsListStateItem] = {
    "deleted",
    "failed",
    "importing",
    "ready",
    "removed",
}


def check_model_versions_list_state_item(value: str) -> ModelVersionsListStateItem:
    if value in MODEL_VERSIONS_LIST_STATE_ITEM_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {MODEL_VERSIONS_LIST_STATE_ITEM_VALUES!r}"
    )
