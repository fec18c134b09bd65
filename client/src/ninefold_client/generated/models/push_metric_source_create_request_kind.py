from typing import Literal

PushMetricSourceCreateRequestKind = Literal["push"]

PUSH_METRIC_SOURCE_CREATE_REQUEST_KIND_VALUES: set[PushMetricSourceCreateRequestKind] = {
    "push",
}


def check_push_metric_source_create_request_kind(value: str) -> PushMetricSourceCreateRequestKind:
    if value in PUSH_METRIC_SOURCE_CREATE_REQUEST_KIND_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {PUSH_METRIC_SOURCE_CREATE_REQUEST_KIND_VALUES!r}"
    )
