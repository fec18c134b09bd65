from typing import Literal

UsageMonthsRetrieveBy = Literal["chip", "queue", "team", "user", "work"]

USAGE_MONTHS_RETRIEVE_BY_VALUES: set[UsageMonthsRetrieveBy] = {
    "chip",
    "queue",
    "team",
    "user",
    "work",
}


def check_usage_months_retrieve_by(value: str) -> UsageMonthsRetrieveBy:
    if value in USAGE_MONTHS_RETRIEVE_BY_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {USAGE_MONTHS_RETRIEVE_BY_VALUES!r}"
    )
