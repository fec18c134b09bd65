from typing import Literal

FinetuneLaunchComparisonRequestRequestKind = Literal["finetune"]

FINETUNE_LAUNCH_COMPARISON_REQUEST_REQUEST_KIND_VALUES: set[
    FinetuneLaunchComparisonRequestRequestKind
] = {
    "finetune",
}


def check_finetune_launch_comparison_request_request_kind(
    value: str,
) -> FinetuneLaunchComparisonRequestRequestKind:
    if value in FINETUNE_LAUNCH_COMPARISON_REQUEST_REQUEST_KIND_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {FINETUNE_LAUNCH_COMPARISON_REQUEST_REQUEST_KIND_VALUES!r}"
    )
