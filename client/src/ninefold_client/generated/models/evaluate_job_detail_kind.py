from typing import Literal

EvaluateJobDetailKind = Literal["evaluate"]

EVALUATE_JOB_DETAIL_KIND_VALUES: set[EvaluateJobDetailKind] = {
    "evaluate",
}


def check_evaluate_job_detail_kind(value: str) -> EvaluateJobDetailKind:
    if value in EVALUATE_JOB_DETAIL_KIND_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {EVALUATE_JOB_DETAIL_KIND_VALUES!r}"
    )
