from typing import Literal

ReleaseReasonEnum = Literal["cancelled", "fault", "finished", "moved", "preempted"]

RELEASE_REASON_ENUM_VALUES: set[ReleaseReasonEnum] = {
    "cancelled",
    "fault",
    "finished",
    "moved",
    "preempted",
}


def check_release_reason_enum(value: str) -> ReleaseReasonEnum:
    if value in RELEASE_REASON_ENUM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {RELEASE_REASON_ENUM_VALUES!r}")
