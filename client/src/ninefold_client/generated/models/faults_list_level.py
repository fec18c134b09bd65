from typing import Literal

FaultsListLevel = Literal[1, 2, 3, 4, 5, 6]

FAULTS_LIST_LEVEL_VALUES: set[FaultsListLevel] = {
    1,
    2,
    3,
    4,
    5,
    6,
}


def check_faults_list_level(value: int) -> FaultsListLevel:
    if value in FAULTS_LIST_LEVEL_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {FAULTS_LIST_LEVEL_VALUES!r}")
