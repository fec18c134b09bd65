from typing import Literal

FinetuneSpecRequestRecomputeActivations = Literal["auto", "off", "on"]

FINETUNE_SPEC_REQUEST_RECOMPUTE_ACTIVATIONS_VALUES: set[FinetuneSpecRequestRecomputeActivations] = {
    "auto",
    "off",
    "on",
}


def check_finetune_spec_request_recompute_activations(
    value: str,
) -> FinetuneSpecRequestRecomputeActivations:
    if value in FINETUNE_SPEC_REQUEST_RECOMPUTE_ACTIVATIONS_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {FINETUNE_SPEC_REQUEST_RECOMPUTE_ACTIVATIONS_VALUES!r}"
    )
