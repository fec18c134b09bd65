from typing import Literal

ReachEnum = Literal["node_port", "pod"]

REACH_ENUM_VALUES: set[ReachEnum] = {
    "node_port",
    "pod",
}


def check_reach_enum(value: str) -> ReachEnum:
    if value in REACH_ENUM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {REACH_ENUM_VALUES!r}")
