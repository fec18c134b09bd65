from typing import Literal

PushMetricSourceKind = Literal["push"]

PUSH_METRIC_SOURCE_KIND_VALUES: set[PushMetricSourceKind] = {
    "push",
}


def check_push_metric_source_kind(value: str) -> PushMetricSourceKind:
    if value in PUSH_METRIC_SOURCE_KIND_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {PUSH_METRIC_SOURCE_KIND_VALUES!r}"
    )
