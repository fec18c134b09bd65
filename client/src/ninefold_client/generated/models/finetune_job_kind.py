from typing import Literal

FinetuneJobKind = Literal["finetune"]

FINETUNE_JOB_KIND_VALUES: set[FinetuneJobKind] = {
    "finetune",
}


def check_finetune_job_kind(value: str) -> FinetuneJobKind:
    if value in FINETUNE_JOB_KIND_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {FINETUNE_JOB_KIND_VALUES!r}")
