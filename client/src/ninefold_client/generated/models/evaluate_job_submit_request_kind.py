from typing import Literal

EvaluateJobSubmitRequestKind = Literal["evaluate"]

EVALUATE_JOB_SUBMIT_REQUEST_KIND_VALUES: set[EvaluateJobSubmitRequestKind] = {
    "evaluate",
}


def check_evaluate_job_submit_request_kind(value: str) -> EvaluateJobSubmitRequestKind:
    if value in EVALUATE_JOB_SUBMIT_REQUEST_KIND_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {EVALUATE_JOB_SUBMIT_REQUEST_KIND_VALUES!r}"
    )
