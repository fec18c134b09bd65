from typing import Literal

PhaseEnum = Literal["complete", "failed", "paused", "progressing"]

PHASE_ENUM_VALUES: set[PhaseEnum] = {
    "complete",
    "failed",
    "paused",
    "progressing",
}


def check_phase_enum(value: str) -> PhaseEnum:
    if value in PHASE_ENUM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {PHASE_ENUM_VALUES!r}")
