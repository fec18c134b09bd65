from typing import Literal

UsageListOutcome = Literal["aborted", "error", "ok", "rejected"]

USAGE_LIST_OUTCOME_VALUES: set[UsageListOutcome] = {
    "aborted",
    "error",
    "ok",
    "rejected",
}


def check_usage_list_outcome(value: str) -> UsageListOutcome:
    if value in USAGE_LIST_OUTCOME_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {USAGE_LIST_OUTCOME_VALUES!r}")
