from typing import Literal

DatasetVersionsRowsRetrieveSplit = Literal["test", "train", "validation"]

DATASET_VERSIONS_ROWS_RETRIEVE_SPLIT_VALUES: set[DatasetVersionsRowsRetrieveSplit] = {
    "test",
    "train",
    "validation",
}


def check_dataset_versions_rows_retrieve_split(value: str) -> DatasetVersionsRowsRetrieveSplit:
    if value in DATASET_VERSIONS_ROWS_RETRIEVE_SPLIT_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {DATASET_VERSIONS_ROWS_RETRIEVE_SPLIT_VALUES!r}"
    )
