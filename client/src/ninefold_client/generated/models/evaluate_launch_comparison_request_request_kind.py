from typing import Literal

EvaluateLaunchComparisonRequestRequestKind = Literal["evaluate"]

EVALUATE_LAUNCH_COMPARISON_REQUEST_REQUEST_KIND_VALUES: set[
    EvaluateLaunchComparisonRequestRequestKind
] = {
    "evaluate",
}


def check_evaluate_launch_comparison_request_request_kind(
    value: str,
) -> EvaluateLaunchComparisonRequestRequestKind:
    if value in EVALUATE_LAUNCH_COMPARISON_REQUEST_REQUEST_KIND_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {EVALUATE_LAUNCH_COMPARISON_REQUEST_REQUEST_KIND_VALUES!r}"
    )
