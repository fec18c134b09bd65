from typing import Literal

StorageArtifactsListKind = Literal["code", "dataset", "model", "outputs", "report"]

STORAGE_ARTIFACTS_LIST_KIND_VALUES: set[StorageArtifactsListKind] = {
    "code",
    "dataset",
    "model",
    "outputs",
    "report",
}


def check_storage_artifacts_list_kind(value: str) -> StorageArtifactsListKind:
    if value in STORAGE_ARTIFACTS_LIST_KIND_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {STORAGE_ARTIFACTS_LIST_KIND_VALUES!r}"
    )
