from typing import Literal

FinetuneJobDetailKind = Literal["finetune"]

FINETUNE_JOB_DETAIL_KIND_VALUES: set[FinetuneJobDetailKind] = {
    "finetune",
}


def check_finetune_job_detail_kind(value: str) -> FinetuneJobDetailKind:
    if value in FINETUNE_JOB_DETAIL_KIND_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {FINETUNE_JOB_DETAIL_KIND_VALUES!r}"
    )
