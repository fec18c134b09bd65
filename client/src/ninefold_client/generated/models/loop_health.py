from typing import Literal

LoopHealth = Literal["failing", "late", "on_time", "stuck", "unseen"]

LOOP_HEALTH_VALUES: set[LoopHealth] = {
    "failing",
    "late",
    "on_time",
    "stuck",
    "unseen",
}


def check_loop_health(value: str) -> LoopHealth:
    if value in LOOP_HEALTH_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {LOOP_HEALTH_VALUES!r}")
