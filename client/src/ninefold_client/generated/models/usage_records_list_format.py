from typing import Literal

UsageRecordsListFormat = Literal["csv", "json"]

USAGE_RECORDS_LIST_FORMAT_VALUES: set[UsageRecordsListFormat] = {
    "csv",
    "json",
}


def check_usage_records_list_format(value: str) -> UsageRecordsListFormat:
    if value in USAGE_RECORDS_LIST_FORMAT_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {USAGE_RECORDS_LIST_FORMAT_VALUES!r}"
    )
