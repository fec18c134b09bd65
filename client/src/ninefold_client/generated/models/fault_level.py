from typing import Literal

FaultLevel = Literal[1, 2, 3, 4, 5, 6]

FAULT_LEVEL_VALUES: set[FaultLevel] = {
    1,
    2,
    3,
    4,
    5,
    6,
}


def check_fault_level(value: int) -> FaultLevel:
    if value in FAULT_LEVEL_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {FAULT_LEVEL_VALUES!r}")
