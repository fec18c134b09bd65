from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

from ..models.exporter_metric_source_create_request_kind import (
    ExporterMetricSourceCreateRequestKind,
    check_exporter_metric_source_create_request_kind,
)
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.exporter_source_options_request import ExporterSourceOptionsRequest


T = TypeVar("T", bound="ExporterMetricSourceCreateRequest")


@_attrs_define
class ExporterMetricSourceCreateRequest:
    """ExporterMetricSourceCreateRequest"""

    options: ExporterSourceOptionsRequest
    name: str
    cluster: str
    kind: ExporterMetricSourceCreateRequestKind
    every: int | Unset = UNSET
    token: str | Unset = UNSET
    enabled: bool | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        options = self.options.to_dict()

        name = self.name

        cluster = self.cluster

        kind: str = self.kind

        every = self.every

        token = self.token

        enabled = self.enabled

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "options": options,
                "name": name,
                "cluster": cluster,
                "kind": kind,
            }
        )
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

        d = dict(src_dict)
        options = ExporterSourceOptionsRequest.from_dict(d.pop("options"))

        name = d.pop("name")

        cluster = d.pop("cluster")

        kind = check_exporter_metric_source_create_request_kind(d.pop("kind"))

        every = d.pop("every", UNSET)

        token = d.pop("token", UNSET)

        enabled = d.pop("enabled", UNSET)

        exporter_metric_source_create_request = cls(
            options=options,
            name=name,
            cluster=cluster,
            kind=kind,
            every=every,
            token=token,
            enabled=enabled,
        )

        return exporter_metric_source_create_request
