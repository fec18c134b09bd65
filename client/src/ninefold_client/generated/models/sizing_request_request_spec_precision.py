from typing import Literal

SizingRequestRequestSpecPrecision = Literal["bfloat16", "float16", "float32"]

SIZING_REQUEST_REQUEST_SPEC_PRECISION_VALUES: set[SizingRequestRequestSpecPrecision] = {
    "bfloat16",
    "float16",
    "float32",
}


def check_sizing_request_request_spec_precision(value: str) -> SizingRequestRequestSpecPrecision:
    if value in SIZING_REQUEST_REQUEST_SPEC_PRECISION_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {SIZING_REQUEST_REQUEST_SPEC_PRECISION_VALUES!r}"
    )
