from typing import Literal

ServeSpecRequestPrecision = Literal["auto", "bfloat16", "float16", "float32"]

SERVE_SPEC_REQUEST_PRECISION_VALUES: set[ServeSpecRequestPrecision] = {
    "auto",
    "bfloat16",
    "float16",
    "float32",
}


def check_serve_spec_request_precision(value: str) -> ServeSpecRequestPrecision:
    if value in SERVE_SPEC_REQUEST_PRECISION_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {SERVE_SPEC_REQUEST_PRECISION_VALUES!r}"
    )
