from typing import Literal

QuantizeStepGateType0Otherwise = Literal["skip", "stop"]

QUANTIZE_STEP_GATE_TYPE_0_OTHERWISE_VALUES: set[QuantizeStepGateType0Otherwise] = {
    "skip",
    "stop",
}


def check_quantize_step_gate_type_0_otherwise(value: str) -> QuantizeStepGateType0Otherwise:
    if value in QUANTIZE_STEP_GATE_TYPE_0_OTHERWISE_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {QUANTIZE_STEP_GATE_TYPE_0_OTHERWISE_VALUES!r}"
    )
