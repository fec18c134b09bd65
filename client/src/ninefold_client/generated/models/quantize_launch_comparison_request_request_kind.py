from typing import Literal

QuantizeLaunchComparisonRequestRequestKind = Literal["quantize"]

QUANTIZE_LAUNCH_COMPARISON_REQUEST_REQUEST_KIND_VALUES: set[
    QuantizeLaunchComparisonRequestRequestKind
] = {
    "quantize",
}


def check_quantize_launch_comparison_request_request_kind(
    value: str,
) -> QuantizeLaunchComparisonRequestRequestKind:
    if value in QUANTIZE_LAUNCH_COMPARISON_REQUEST_REQUEST_KIND_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {QUANTIZE_LAUNCH_COMPARISON_REQUEST_REQUEST_KIND_VALUES!r}"
    )
