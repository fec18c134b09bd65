from typing import Literal

ScriptLaunchComparisonRequestRequestKind = Literal["script"]

SCRIPT_LAUNCH_COMPARISON_REQUEST_REQUEST_KIND_VALUES: set[
    ScriptLaunchComparisonRequestRequestKind
] = {
    "script",
}


def check_script_launch_comparison_request_request_kind(
    value: str,
) -> ScriptLaunchComparisonRequestRequestKind:
    if value in SCRIPT_LAUNCH_COMPARISON_REQUEST_REQUEST_KIND_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {SCRIPT_LAUNCH_COMPARISON_REQUEST_REQUEST_KIND_VALUES!r}"
    )
