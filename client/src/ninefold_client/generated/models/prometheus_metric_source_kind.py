from typing import Literal

PrometheusMetricSourceKind = Literal["prometheus"]

PROMETHEUS_METRIC_SOURCE_KIND_VALUES: set[PrometheusMetricSourceKind] = {
    "prometheus",
}


def check_prometheus_metric_source_kind(value: str) -> PrometheusMetricSourceKind:
    if value in PROMETHEUS_METRIC_SOURCE_KIND_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {PROMETHEUS_METRIC_SOURCE_KIND_VALUES!r}"
    )
