from typing import Literal

QueueTreeUpdateFormat = Literal["json", "yaml"]

QUEUE_TREE_UPDATE_FORMAT_VALUES: set[QueueTreeUpdateFormat] = {
    "json",
    "yaml",
}


def check_queue_tree_update_format(value: str) -> QueueTreeUpdateFormat:
    if value in QUEUE_TREE_UPDATE_FORMAT_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {QUEUE_TREE_UPDATE_FORMAT_VALUES!r}"
    )
