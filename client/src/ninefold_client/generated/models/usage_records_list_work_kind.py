from typing import Literal

UsageRecordsListWorkKind = Literal["deployment", "job"]

USAGE_RECORDS_LIST_WORK_KIND_VALUES: set[UsageRecordsListWorkKind] = {
    "deployment",
    "job",
}


def check_usage_records_list_work_kind(value: str) -> UsageRecordsListWorkKind:
    if value in USAGE_RECORDS_LIST_WORK_KIND_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {USAGE_RECORDS_LIST_WORK_KIND_VALUES!r}"
    )
