from typing import Literal

QuantizeSpecRequestQuantizationScheme = Literal["fp8-dynamic", "w4a16-awq", "w8a8-smoothquant"]

QUANTIZE_SPEC_REQUEST_QUANTIZATION_SCHEME_VALUES: set[QuantizeSpecRequestQuantizationScheme] = {
    "fp8-dynamic",
    "w4a16-awq",
    "w8a8-smoothquant",
}


def check_quantize_spec_request_quantization_scheme(
    value: str,
) -> QuantizeSpecRequestQuantizationScheme:
    if value in QUANTIZE_SPEC_REQUEST_QUANTIZATION_SCHEME_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {QUANTIZE_SPEC_REQUEST_QUANTIZATION_SCHEME_VALUES!r}"
    )
