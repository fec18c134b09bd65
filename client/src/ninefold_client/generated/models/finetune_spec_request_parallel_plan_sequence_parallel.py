from typing import Literal

FinetuneSpecRequestParallelPlanSequenceParallel = Literal["auto", "off", "on"]

FINETUNE_SPEC_REQUEST_PARALLEL_PLAN_SEQUENCE_PARALLEL_VALUES: set[
    FinetuneSpecRequestParallelPlanSequenceParallel
] = {
    "auto",
    "off",
    "on",
}


def check_finetune_spec_request_parallel_plan_sequence_parallel(
    value: str,
) -> FinetuneSpecRequestParallelPlanSequenceParallel:
    if value in FINETUNE_SPEC_REQUEST_PARALLEL_PLAN_SEQUENCE_PARALLEL_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {FINETUNE_SPEC_REQUEST_PARALLEL_PLAN_SEQUENCE_PARALLEL_VALUES!r}"
    )
