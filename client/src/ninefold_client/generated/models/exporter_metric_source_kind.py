from typing import Literal

ExporterMetricSourceKind = Literal["exporter"]

EXPORTER_METRIC_SOURCE_KIND_VALUES: set[ExporterMetricSourceKind] = {
    "exporter",
}


def check_exporter_metric_source_kind(value: str) -> ExporterMetricSourceKind:
    if value in EXPORTER_METRIC_SOURCE_KIND_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {EXPORTER_METRIC_SOURCE_KIND_VALUES!r}"
    )
