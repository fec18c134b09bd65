from typing import Literal

IsolationsListState = Literal["draining", "empty", "returned", "testing"]

ISOLATIONS_LIST_STATE_VALUES: set[IsolationsListState] = {
    "draining",
    "empty",
    "returned",
    "testing",
}


def check_isolations_list_state(value: str) -> IsolationsListState:
    if value in ISOLATIONS_LIST_STATE_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {ISOLATIONS_LIST_STATE_VALUES!r}")
