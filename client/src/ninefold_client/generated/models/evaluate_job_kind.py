from typing import Literal

EvaluateJobKind = Literal["evaluate"]

EVALUATE_JOB_KIND_VALUES: set[EvaluateJobKind] = {
    "evaluate",
}


def check_evaluate_job_kind(value: str) -> EvaluateJobKind:
    if value in EVALUATE_JOB_KIND_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {EVALUATE_JOB_KIND_VALUES!r}")
