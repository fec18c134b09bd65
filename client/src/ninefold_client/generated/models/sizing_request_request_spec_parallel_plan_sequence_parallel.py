from typing import Literal

SizingRequestRequestSpecParallelPlanSequenceParallel = Literal["auto", "off", "on"]

SIZING_REQUEST_REQUEST_SPEC_PARALLEL_PLAN_SEQUENCE_PARALLEL_VALUES: set[
    SizingRequestRequestSpecParallelPlanSequenceParallel
] = {
    "auto",
    "off",
    "on",
}


def check_sizing_request_request_spec_parallel_plan_sequence_parallel(
    value: str,
) -> SizingRequestRequestSpecParallelPlanSequenceParallel:
    if value in SIZING_REQUEST_REQUEST_SPEC_PARALLEL_PLAN_SEQUENCE_PARALLEL_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {SIZING_REQUEST_REQUEST_SPEC_PARALLEL_PLAN_SEQUENCE_PARALLEL_VALUES!r}"
    )
