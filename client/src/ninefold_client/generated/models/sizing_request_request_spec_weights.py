from typing import Literal

SizingRequestRequestSpecWeights = Literal[
    "bfloat16",
    "float16",
    "float32",
    "fp8",
    "fp8-block",
    "fp8-dynamic",
    "int8",
    "mxfp4",
    "nf4",
    "nf4-double",
    "stored",
    "w4a16",
    "w4a16-awq",
    "w4a16-gptq",
    "w8a16",
    "w8a8",
    "w8a8-smoothquant",
]

SIZING_REQUEST_REQUEST_SPEC_WEIGHTS_VALUES: set[SizingRequestRequestSpecWeights] = {
    "bfloat16",
    "float16",
    "float32",
    "fp8",
    "fp8-block",
    "fp8-dynamic",
    "int8",
    "mxfp4",
    "nf4",
    "nf4-double",
    "stored",
    "w4a16",
    "w4a16-awq",
    "w4a16-gptq",
    "w8a16",
    "w8a8",
    "w8a8-smoothquant",
}


def check_sizing_request_request_spec_weights(value: str) -> SizingRequestRequestSpecWeights:
    if value in SIZING_REQUEST_REQUEST_SPEC_WEIGHTS_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {SIZING_REQUEST_REQUEST_SPEC_WEIGHTS_VALUES!r}"
    )
