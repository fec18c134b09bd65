from typing import Literal

QuantizeStepKind = Literal["quantize"]

QUANTIZE_STEP_KIND_VALUES: set[QuantizeStepKind] = {
    "quantize",
}


def check_quantize_step_kind(value: str) -> QuantizeStepKind:
    if value in QUANTIZE_STEP_KIND_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {QUANTIZE_STEP_KIND_VALUES!r}")
