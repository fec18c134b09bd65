from typing import Literal

IsolationStateEnum = Literal["draining", "empty", "returned", "testing"]

ISOLATION_STATE_ENUM_VALUES: set[IsolationStateEnum] = {
    "draining",
    "empty",
    "returned",
    "testing",
}


def check_isolation_state_enum(value: str) -> IsolationStateEnum:
    if value in ISOLATION_STATE_ENUM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {ISOLATION_STATE_ENUM_VALUES!r}")
