from typing import Literal

StorageRunsListKind = Literal["garbage", "retention"]

STORAGE_RUNS_LIST_KIND_VALUES: set[StorageRunsListKind] = {
    "garbage",
    "retention",
}


def check_storage_runs_list_kind(value: str) -> StorageRunsListKind:
    if value in STORAGE_RUNS_LIST_KIND_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {STORAGE_RUNS_LIST_KIND_VALUES!r}"
    )
