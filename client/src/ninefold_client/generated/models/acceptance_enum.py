from typing import Literal

AcceptanceEnum = Literal["accepted", "overridden", "rejected"]

ACCEPTANCE_ENUM_VALUES: set[AcceptanceEnum] = {
    "accepted",
    "overridden",
    "rejected",
}


def check_acceptance_enum(value: str) -> AcceptanceEnum:
    if value in ACCEPTANCE_ENUM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {ACCEPTANCE_ENUM_VALUES!r}")
