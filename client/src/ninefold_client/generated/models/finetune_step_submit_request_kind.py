from typing import Literal

FinetuneStepSubmitRequestKind = Literal["finetune"]

FINETUNE_STEP_SUBMIT_REQUEST_KIND_VALUES: set[FinetuneStepSubmitRequestKind] = {
    "finetune",
}


def check_finetune_step_submit_request_kind(value: str) -> FinetuneStepSubmitRequestKind:
    if value in FINETUNE_STEP_SUBMIT_REQUEST_KIND_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {FINETUNE_STEP_SUBMIT_REQUEST_KIND_VALUES!r}"
    )
