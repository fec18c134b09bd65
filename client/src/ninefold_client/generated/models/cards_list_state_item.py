from typing import Literal

CardsListStateItem = Literal["isolated", "no_new_work", "unknown", "usable"]

CARDS_LIST_STATE_ITEM_VALUES: set[CardsListStateItem] = {
    "isolated",
    "no_new_work",
    "unknown",
    "usable",
}


def check_cards_list_state_item(value: str) -> CardsListStateItem:
    if value in CARDS_LIST_STATE_ITEM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {CARDS_LIST_STATE_ITEM_VALUES!r}")
