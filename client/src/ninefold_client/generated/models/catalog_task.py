from typing import Literal

CatalogTask = Literal["quantize", "serve", "train"]

CATALOG_TASK_VALUES: set[CatalogTask] = {
    "quantize",
    "serve",
    "train",
}


def check_catalog_task(value: str) -> CatalogTask:
    if value in CATALOG_TASK_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {CATALOG_TASK_VALUES!r}")
