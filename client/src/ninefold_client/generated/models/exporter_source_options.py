from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.exporter_target_options import ExporterTargetOptions


T = TypeVar("T", bound="ExporterSourceOptions")


@_attrs_define
class ExporterSourceOptions:
    """ExporterSourceOptions"""

    vendor: str
    targets: list[ExporterTargetOptions]

    def to_dict(self) -> dict[str, Any]:
        vendor = self.vendor

        targets = []
        for targets_item_data in self.targets:
            targets_item = targets_item_data.to_dict()
            targets.append(targets_item)

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "vendor": vendor,
                "targets": targets,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.exporter_target_options import ExporterTargetOptions

        d = dict(src_dict)
        vendor = d.pop("vendor")

        targets = []
        _targets = d.pop("targets")
        for targets_item_data in _targets:
            targets_item = ExporterTargetOptions.from_dict(targets_item_data)

            targets.append(targets_item)

        exporter_source_options = cls(
            vendor=vendor,
            targets=targets,
        )

        return exporter_source_options
