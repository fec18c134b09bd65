from typing import Literal

FinetuneSpecRequestPrecision = Literal["auto", "bfloat16", "float16", "float32"]

FINETUNE_SPEC_REQUEST_PRECISION_VALUES: set[FinetuneSpecRequestPrecision] = {
    "auto",
    "bfloat16",
    "float16",
    "float32",
}


def check_finetune_spec_request_precision(value: str) -> FinetuneSpecRequestPrecision:
    if value in FINETUNE_SPEC_REQUEST_PRECISION_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {FINETUNE_SPEC_REQUEST_PRECISION_VALUES!r}"
    )
