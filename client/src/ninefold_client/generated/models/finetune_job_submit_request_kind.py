from typing import Literal

FinetuneJobSubmitRequestKind = Literal["finetune"]

FINETUNE_JOB_SUBMIT_REQUEST_KIND_VALUES: set[FinetuneJobSubmitRequestKind] = {
    "finetune",
}


def check_finetune_job_submit_request_kind(value: str) -> FinetuneJobSubmitRequestKind:
    if value in FINETUNE_JOB_SUBMIT_REQUEST_KIND_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {FINETUNE_JOB_SUBMIT_REQUEST_KIND_VALUES!r}"
    )
