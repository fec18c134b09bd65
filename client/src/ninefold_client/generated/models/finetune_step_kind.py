from typing import Literal

FinetuneStepKind = Literal["finetune"]

FINETUNE_STEP_KIND_VALUES: set[FinetuneStepKind] = {
    "finetune",
}


def check_finetune_step_kind(value: str) -> FinetuneStepKind:
    if value in FINETUNE_STEP_KIND_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {FINETUNE_STEP_KIND_VALUES!r}")
