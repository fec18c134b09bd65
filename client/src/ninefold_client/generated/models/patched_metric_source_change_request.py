from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.exporter_source_options_request import ExporterSourceOptionsRequest
    from ..models.prometheus_source_options_request import PrometheusSourceOptionsRequest
    from ..models.push_source_options_request import PushSourceOptionsRequest


T = TypeVar("T", bound="PatchedMetricSourceChangeRequest")


@_attrs_define
class PatchedMetricSourceChangeRequest:
    """PatchedMetricSourceChangeRequest"""

    options: (
        ExporterSourceOptionsRequest
        | PrometheusSourceOptionsRequest
        | PushSourceOptionsRequest
        | Unset
    ) = UNSET
    every: int | Unset = UNSET
    token: str | Unset = UNSET
    enabled: bool | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.exporter_source_options_request import (
            ExporterSourceOptionsRequest,
        )
        from ..models.prometheus_source_options_request import (
            PrometheusSourceOptionsRequest,
        )

        options: dict[str, Any] | Unset
        if isinstance(self.options, Unset):
            options = UNSET
        elif isinstance(self.options, ExporterSourceOptionsRequest):
            options = self.options.to_dict()
        elif isinstance(self.options, PrometheusSourceOptionsRequest):
            options = self.options.to_dict()
        else:
            options = self.options.to_dict()

        every = self.every

        token = self.token

        enabled = self.enabled

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if options is not UNSET:
            field_dict["options"] = options
        if every is not UNSET:
            field_dict["every"] = every
        if token is not UNSET:
            field_dict["token"] = token
        if enabled is not UNSET:
            field_dict["enabled"] = enabled

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.exporter_source_options_request import (
            ExporterSourceOptionsRequest,
        )
        from ..models.prometheus_source_options_request import (
            PrometheusSourceOptionsRequest,
        )
        from ..models.push_source_options_request import PushSourceOptionsRequest

        d = dict(src_dict)

        def _parse_options(
            data: object,
        ) -> (
            ExporterSourceOptionsRequest
            | PrometheusSourceOptionsRequest
            | PushSourceOptionsRequest
            | Unset
        ):
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                options_type_0 = ExporterSourceOptionsRequest.from_dict(data)

                return options_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                options_type_1 = PrometheusSourceOptionsRequest.from_dict(data)

                return options_type_1
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            if not isinstance(data, dict):
                raise TypeError()
            options_type_2 = PushSourceOptionsRequest.from_dict(data)

            return options_type_2

        options = _parse_options(d.pop("options", UNSET))

        every = d.pop("every", UNSET)

        token = d.pop("token", UNSET)

        enabled = d.pop("enabled", UNSET)

        patched_metric_source_change_request = cls(
            options=options,
            every=every,
            token=token,
            enabled=enabled,
        )

        return patched_metric_source_change_request
