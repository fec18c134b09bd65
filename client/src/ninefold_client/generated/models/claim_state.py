from typing import Literal

ClaimState = Literal["admitted", "pending", "released", "revoking"]

CLAIM_STATE_VALUES: set[ClaimState] = {
    "admitted",
    "pending",
    "released",
    "revoking",
}


def check_claim_state(value: str) -> ClaimState:
    if value in CLAIM_STATE_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {CLAIM_STATE_VALUES!r}")
