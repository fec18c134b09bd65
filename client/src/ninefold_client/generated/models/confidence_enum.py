from typing import Literal

ConfidenceEnum = Literal["partly", "unverified", "verified"]

CONFIDENCE_ENUM_VALUES: set[ConfidenceEnum] = {
    "partly",
    "unverified",
    "verified",
}


def check_confidence_enum(value: str) -> ConfidenceEnum:
    if value in CONFIDENCE_ENUM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {CONFIDENCE_ENUM_VALUES!r}")
