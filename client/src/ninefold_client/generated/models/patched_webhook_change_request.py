from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

from ..models.kinds_enum import KindsEnum, check_kinds_enum
from ..types import UNSET, Unset

T = TypeVar("T", bound="PatchedWebhookChangeRequest")


@_attrs_define
class PatchedWebhookChangeRequest:
    """PatchedWebhookChangeRequest"""

    url: str | Unset = UNSET
    kinds: list[KindsEnum] | Unset = UNSET
    active: bool | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        url = self.url

        kinds: list[str] | Unset = UNSET
        if not isinstance(self.kinds, Unset):
            kinds = []
            for kinds_item_data in self.kinds:
                kinds_item: str = kinds_item_data
                kinds.append(kinds_item)

        active = self.active

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if url is not UNSET:
            field_dict["url"] = url
        if kinds is not UNSET:
            field_dict["kinds"] = kinds
        if active is not UNSET:
            field_dict["active"] = active

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        url = d.pop("url", UNSET)

        _kinds = d.pop("kinds", UNSET)
        kinds: list[KindsEnum] | Unset = UNSET
        if _kinds is not UNSET:
            kinds = []
            for kinds_item_data in _kinds:
                kinds_item = check_kinds_enum(kinds_item_data)

                kinds.append(kinds_item)

        active = d.pop("active", UNSET)

        patched_webhook_change_request = cls(
            url=url,
            kinds=kinds,
            active=active,
        )

        return patched_webhook_change_request
