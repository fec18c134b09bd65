from typing import Literal

ServeSpecRequestParallelPlanExpertParallel = Literal["off", "on"]

SERVE_SPEC_REQUEST_PARALLEL_PLAN_EXPERT_PARALLEL_VALUES: set[
    ServeSpecRequestParallelPlanExpertParallel
] = {
    "off",
    "on",
}


def check_serve_spec_request_parallel_plan_expert_parallel(
    value: str,
) -> ServeSpecRequestParallelPlanExpertParallel:
    if value in SERVE_SPEC_REQUEST_PARALLEL_PLAN_EXPERT_PARALLEL_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {SERVE_SPEC_REQUEST_PARALLEL_PLAN_EXPERT_PARALLEL_VALUES!r}"
    )
