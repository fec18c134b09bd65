from typing import Literal

FinetuneStepGateType0Otherwise = Literal["skip", "stop"]

FINETUNE_STEP_GATE_TYPE_0_OTHERWISE_VALUES: set[FinetuneStepGateType0Otherwise] = {
    "skip",
    "stop",
}


def check_finetune_step_gate_type_0_otherwise(value: str) -> FinetuneStepGateType0Otherwise:
    if value in FINETUNE_STEP_GATE_TYPE_0_OTHERWISE_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {FINETUNE_STEP_GATE_TYPE_0_OTHERWISE_VALUES!r}"
    )
