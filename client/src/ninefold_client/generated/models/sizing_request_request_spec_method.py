from typing import Literal

SizingRequestRequestSpecMethod = Literal["full", "lora", "qlora"]

SIZING_REQUEST_REQUEST_SPEC_METHOD_VALUES: set[SizingRequestRequestSpecMethod] = {
    "full",
    "lora",
    "qlora",
}


def check_sizing_request_request_spec_method(value: str) -> SizingRequestRequestSpecMethod:
    if value in SIZING_REQUEST_REQUEST_SPEC_METHOD_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {SIZING_REQUEST_REQUEST_SPEC_METHOD_VALUES!r}"
    )
