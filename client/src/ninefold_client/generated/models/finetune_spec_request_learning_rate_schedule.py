from typing import Literal

FinetuneSpecRequestLearningRateSchedule = Literal["constant", "cosine", "linear"]

FINETUNE_SPEC_REQUEST_LEARNING_RATE_SCHEDULE_VALUES: set[
    FinetuneSpecRequestLearningRateSchedule
] = {
    "constant",
    "cosine",
    "linear",
}


def check_finetune_spec_request_learning_rate_schedule(
    value: str,
) -> FinetuneSpecRequestLearningRateSchedule:
    if value in FINETUNE_SPEC_REQUEST_LEARNING_RATE_SCHEDULE_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {FINETUNE_SPEC_REQUEST_LEARNING_RATE_SCHEDULE_VALUES!r}"
    )
