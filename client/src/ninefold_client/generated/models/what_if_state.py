from typing import Literal

WhatIfState = Literal["answered", "asked", "refused"]

WHAT_IF_STATE_VALUES: set[WhatIfState] = {
    "answered",
    "asked",
    "refused",
}


def check_what_if_state(value: str) -> WhatIfState:
    if value in WHAT_IF_STATE_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {WHAT_IF_STATE_VALUES!r}")
