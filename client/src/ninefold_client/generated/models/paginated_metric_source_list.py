from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.exporter_metric_source import ExporterMetricSource
    from ..models.prometheus_metric_source import PrometheusMetricSource
    from ..models.push_metric_source import PushMetricSource


T = TypeVar("T", bound="PaginatedMetricSourceList")


@_attrs_define
class PaginatedMetricSourceList:
    """PaginatedMetricSourceList"""

    next_: None | str
    previous: None | str
    results: list[ExporterMetricSource | PrometheusMetricSource | PushMetricSource]

    def to_dict(self) -> dict[str, Any]:
        from ..models.exporter_metric_source import ExporterMetricSource
        from ..models.prometheus_metric_source import PrometheusMetricSource

        next_: None | str
        next_ = self.next_

        previous: None | str
        previous = self.previous

        results = []
        for results_item_data in self.results:
            results_item: dict[str, Any]
            if isinstance(results_item_data, ExporterMetricSource):
                results_item = results_item_data.to_dict()
            elif isinstance(results_item_data, PrometheusMetricSource):
                results_item = results_item_data.to_dict()
            else:
                results_item = results_item_data.to_dict()

            results.append(results_item)

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "next": next_,
                "previous": previous,
                "results": results,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.exporter_metric_source import ExporterMetricSource
        from ..models.prometheus_metric_source import PrometheusMetricSource
        from ..models.push_metric_source import PushMetricSource

        d = dict(src_dict)

        def _parse_next_(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        next_ = _parse_next_(d.pop("next"))

        def _parse_previous(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        previous = _parse_previous(d.pop("previous"))

        results = []
        _results = d.pop("results")
        for results_item_data in _results:

            def _parse_results_item(
                data: object,
            ) -> ExporterMetricSource | PrometheusMetricSource | PushMetricSource:
                try:
                    if not isinstance(data, dict):
                        raise TypeError()
                    componentsschemas_metric_source_type_0 = ExporterMetricSource.from_dict(data)

                    return componentsschemas_metric_source_type_0
                except (TypeError, ValueError, AttributeError, KeyError):
                    pass
                try:
                    if not isinstance(data, dict):
                        raise TypeError()
                    componentsschemas_metric_source_type_1 = PrometheusMetricSource.from_dict(data)

                    return componentsschemas_metric_source_type_1
                except (TypeError, ValueError, AttributeError, KeyError):
                    pass
                if not isinstance(data, dict):
                    raise TypeError()
                componentsschemas_metric_source_type_2 = PushMetricSource.from_dict(data)

                return componentsschemas_metric_source_type_2

            results_item = _parse_results_item(results_item_data)

            results.append(results_item)

        paginated_metric_source_list = cls(
            next_=next_,
            previous=previous,
            results=results,
        )

        return paginated_metric_source_list
