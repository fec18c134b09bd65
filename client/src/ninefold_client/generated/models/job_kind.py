from typing import Literal

JobKind = Literal["evaluate", "finetune", "quantize", "script"]

JOB_KIND_VALUES: set[JobKind] = {
    "evaluate",
    "finetune",
    "quantize",
    "script",
}


def check_job_kind(value: str) -> JobKind:
    if value in JOB_KIND_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {JOB_KIND_VALUES!r}")
