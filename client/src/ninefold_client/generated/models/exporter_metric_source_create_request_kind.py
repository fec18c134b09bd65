from typing import Literal

ExporterMetricSourceCreateRequestKind = Literal["exporter"]

EXPORTER_METRIC_SOURCE_CREATE_REQUEST_KIND_VALUES: set[ExporterMetricSourceCreateRequestKind] = {
    "exporter",
}


def check_exporter_metric_source_create_request_kind(
    value: str,
) -> ExporterMetricSourceCreateRequestKind:
    if value in EXPORTER_METRIC_SOURCE_CREATE_REQUEST_KIND_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {EXPORTER_METRIC_SOURCE_CREATE_REQUEST_KIND_VALUES!r}"
    )
