from typing import Literal

PrometheusMetricSourceCreateRequestKind = Literal["prometheus"]

PROMETHEUS_METRIC_SOURCE_CREATE_REQUEST_KIND_VALUES: set[
    PrometheusMetricSourceCreateRequestKind
] = {
    "prometheus",
}


def check_prometheus_metric_source_create_request_kind(
    value: str,
) -> PrometheusMetricSourceCreateRequestKind:
    if value in PROMETHEUS_METRIC_SOURCE_CREATE_REQUEST_KIND_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {PROMETHEUS_METRIC_SOURCE_CREATE_REQUEST_KIND_VALUES!r}"
    )
