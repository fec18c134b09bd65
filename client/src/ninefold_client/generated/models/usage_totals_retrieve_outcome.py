from typing import Literal

UsageTotalsRetrieveOutcome = Literal["aborted", "error", "ok", "rejected"]

USAGE_TOTALS_RETRIEVE_OUTCOME_VALUES: set[UsageTotalsRetrieveOutcome] = {
    "aborted",
    "error",
    "ok",
    "rejected",
}


def check_usage_totals_retrieve_outcome(value: str) -> UsageTotalsRetrieveOutcome:
    if value in USAGE_TOTALS_RETRIEVE_OUTCOME_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {USAGE_TOTALS_RETRIEVE_OUTCOME_VALUES!r}"
    )
