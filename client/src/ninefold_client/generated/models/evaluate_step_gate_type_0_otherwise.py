from typing import Literal

EvaluateStepGateType0Otherwise = Literal["skip", "stop"]

EVALUATE_STEP_GATE_TYPE_0_OTHERWISE_VALUES: set[EvaluateStepGateType0Otherwise] = {
    "skip",
    "stop",
}


def check_evaluate_step_gate_type_0_otherwise(value: str) -> EvaluateStepGateType0Otherwise:
    if value in EVALUATE_STEP_GATE_TYPE_0_OTHERWISE_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {EVALUATE_STEP_GATE_TYPE_0_OTHERWISE_VALUES!r}"
    )
