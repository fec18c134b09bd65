from typing import Literal

VerdictEnum = Literal["failed", "lacking", "passed"]

VERDICT_ENUM_VALUES: set[VerdictEnum] = {
    "failed",
    "lacking",
    "passed",
}


def check_verdict_enum(value: str) -> VerdictEnum:
    if value in VERDICT_ENUM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {VERDICT_ENUM_VALUES!r}")
