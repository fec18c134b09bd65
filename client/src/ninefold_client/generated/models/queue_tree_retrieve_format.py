from typing import Literal

QueueTreeRetrieveFormat = Literal["json", "yaml"]

QUEUE_TREE_RETRIEVE_FORMAT_VALUES: set[QueueTreeRetrieveFormat] = {
    "json",
    "yaml",
}


def check_queue_tree_retrieve_format(value: str) -> QueueTreeRetrieveFormat:
    if value in QUEUE_TREE_RETRIEVE_FORMAT_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {QUEUE_TREE_RETRIEVE_FORMAT_VALUES!r}"
    )
