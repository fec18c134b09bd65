from typing import Literal

EvaluateStepSubmitRequestKind = Literal["evaluate"]

EVALUATE_STEP_SUBMIT_REQUEST_KIND_VALUES: set[EvaluateStepSubmitRequestKind] = {
    "evaluate",
}


def check_evaluate_step_submit_request_kind(value: str) -> EvaluateStepSubmitRequestKind:
    if value in EVALUATE_STEP_SUBMIT_REQUEST_KIND_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {EVALUATE_STEP_SUBMIT_REQUEST_KIND_VALUES!r}"
    )
