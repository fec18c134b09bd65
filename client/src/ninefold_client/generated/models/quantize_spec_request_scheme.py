from typing import Literal

QuantizeSpecRequestScheme = Literal["fp8-dynamic", "w4a16-awq", "w8a8-smoothquant"]

QUANTIZE_SPEC_REQUEST_SCHEME_VALUES: set[QuantizeSpecRequestScheme] = {
    "fp8-dynamic",
    "w4a16-awq",
    "w8a8-smoothquant",
}


def check_quantize_spec_request_scheme(value: str) -> QuantizeSpecRequestScheme:
    if value in QUANTIZE_SPEC_REQUEST_SCHEME_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {QUANTIZE_SPEC_REQUEST_SCHEME_VALUES!r}"
    )
