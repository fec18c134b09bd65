from typing import Literal

UsageDaysListWorkKind = Literal["deployment", "job"]

USAGE_DAYS_LIST_WORK_KIND_VALUES: set[UsageDaysListWorkKind] = {
    "deployment",
    "job",
}


def check_usage_days_list_work_kind(value: str) -> UsageDaysListWorkKind:
    if value in USAGE_DAYS_LIST_WORK_KIND_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {USAGE_DAYS_LIST_WORK_KIND_VALUES!r}"
    )
