from typing import Literal

CardState = Literal["isolated", "no_new_work", "unknown", "usable"]

CARD_STATE_VALUES: set[CardState] = {
    "isolated",
    "no_new_work",
    "unknown",
    "usable",
}


def check_card_state(value: str) -> CardState:
    if value in CARD_STATE_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {CARD_STATE_VALUES!r}")
