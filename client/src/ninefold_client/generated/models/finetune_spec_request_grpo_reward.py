from typing import Literal

FinetuneSpecRequestGRPOReward = Literal["exact_match", "label_accuracy"]

FINETUNE_SPEC_REQUEST_GRPO_REWARD_VALUES: set[FinetuneSpecRequestGRPOReward] = {
    "exact_match",
    "label_accuracy",
}


def check_finetune_spec_request_grpo_reward(value: str) -> FinetuneSpecRequestGRPOReward:
    if value in FINETUNE_SPEC_REQUEST_GRPO_REWARD_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {FINETUNE_SPEC_REQUEST_GRPO_REWARD_VALUES!r}"
    )
