from typing import Literal

FinetuneSpecRequestTrainingObjective = Literal["dpo", "grpo", "pretrain", "sft"]

FINETUNE_SPEC_REQUEST_TRAINING_OBJECTIVE_VALUES: set[FinetuneSpecRequestTrainingObjective] = {
    "dpo",
    "grpo",
    "pretrain",
    "sft",
}


def check_finetune_spec_request_training_objective(
    value: str,
) -> FinetuneSpecRequestTrainingObjective:
    if value in FINETUNE_SPEC_REQUEST_TRAINING_OBJECTIVE_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {FINETUNE_SPEC_REQUEST_TRAINING_OBJECTIVE_VALUES!r}"
    )
