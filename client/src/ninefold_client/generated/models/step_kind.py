from typing import Literal

StepKind = Literal["deploy", "evaluate", "finetune", "quantize"]

STEP_KIND_VALUES: set[StepKind] = {
    "deploy",
    "evaluate",
    "finetune",
    "quantize",
}


def check_step_kind(value: str) -> StepKind:
    if value in STEP_KIND_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {STEP_KIND_VALUES!r}")
