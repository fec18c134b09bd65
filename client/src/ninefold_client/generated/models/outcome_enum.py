from typing import Literal

OutcomeEnum = Literal["reclaims", "starts", "waits"]

OUTCOME_ENUM_VALUES: set[OutcomeEnum] = {
    "reclaims",
    "starts",
    "waits",
}


def check_outcome_enum(value: str) -> OutcomeEnum:
    if value in OUTCOME_ENUM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {OUTCOME_ENUM_VALUES!r}")
