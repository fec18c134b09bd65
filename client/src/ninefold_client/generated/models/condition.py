from typing import Literal

Condition = Literal["degraded", "down", "unknown", "well"]

CONDITION_VALUES: set[Condition] = {
    "degraded",
    "down",
    "unknown",
    "well",
}


def check_condition(value: str) -> Condition:
    if value in CONDITION_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {CONDITION_VALUES!r}")
