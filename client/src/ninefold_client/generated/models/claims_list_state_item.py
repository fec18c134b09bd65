from typing import Literal

ClaimsListStateItem = Literal["admitted", "pending", "released", "revoking"]

CLAIMS_LIST_STATE_ITEM_VALUES: set[ClaimsListStateItem] = {
    "admitted",
    "pending",
    "released",
    "revoking",
}


def check_claims_list_state_item(value: str) -> ClaimsListStateItem:
    if value in CLAIMS_LIST_STATE_ITEM_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {CLAIMS_LIST_STATE_ITEM_VALUES!r}"
    )
