from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.json_object import JsonObject


T = TypeVar("T", bound="PatchedMetricSourceChangeRequest")


@_attrs_define
class PatchedMetricSourceChangeRequest:
    """PatchedMetricSourceChangeRequest"""

    options: JsonObject | Unset = UNSET
    every: int | Unset = UNSET
    token: str | Unset = UNSET
    enabled: bool | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        options: dict[str, Any] | Unset = UNSET
        if not isinstance(self.options, Unset):
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
        from ..models.json_object import JsonObject

        d = dict(src_dict)
        _options = d.pop("options", UNSET)
        options: JsonObject | Unset
        if isinstance(_options, Unset):
            options = UNSET
        else:
            options = JsonObject.from_dict(_options)

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
