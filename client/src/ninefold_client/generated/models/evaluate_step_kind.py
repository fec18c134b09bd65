from typing import Literal

EvaluateStepKind = Literal["evaluate"]

EVALUATE_STEP_KIND_VALUES: set[EvaluateStepKind] = {
    "evaluate",
}


def check_evaluate_step_kind(value: str) -> EvaluateStepKind:
    if value in EVALUATE_STEP_KIND_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {EVALUATE_STEP_KIND_VALUES!r}")
