from typing import Literal

StorageRunKind = Literal["garbage", "retention"]

STORAGE_RUN_KIND_VALUES: set[StorageRunKind] = {
    "garbage",
    "retention",
}


def check_storage_run_kind(value: str) -> StorageRunKind:
    if value in STORAGE_RUN_KIND_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {STORAGE_RUN_KIND_VALUES!r}")
