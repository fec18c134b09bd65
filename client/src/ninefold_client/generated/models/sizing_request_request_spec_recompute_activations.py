from typing import Literal

SizingRequestRequestSpecRecomputeActivations = Literal["off", "on"]

SIZING_REQUEST_REQUEST_SPEC_RECOMPUTE_ACTIVATIONS_VALUES: set[
    SizingRequestRequestSpecRecomputeActivations
] = {
    "off",
    "on",
}


def check_sizing_request_request_spec_recompute_activations(
    value: str,
) -> SizingRequestRequestSpecRecomputeActivations:
    if value in SIZING_REQUEST_REQUEST_SPEC_RECOMPUTE_ACTIVATIONS_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {SIZING_REQUEST_REQUEST_SPEC_RECOMPUTE_ACTIVATIONS_VALUES!r}"
    )
