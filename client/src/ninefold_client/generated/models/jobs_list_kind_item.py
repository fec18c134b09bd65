from typing import Literal

JobsListKindItem = Literal["evaluate", "finetune", "quantize", "script"]

JOBS_LIST_KIND_ITEM_VALUES: set[JobsListKindItem] = {
    "evaluate",
    "finetune",
    "quantize",
    "script",
}


def check_jobs_list_kind_item(value: str) -> JobsListKindItem:
    if value in JOBS_LIST_KIND_ITEM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {JOBS_LIST_KIND_ITEM_VALUES!r}")
