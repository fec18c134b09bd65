from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="PatchedAlertReceiverChangeRequest")


@_attrs_define
class PatchedAlertReceiverChangeRequest:
    """PatchedAlertReceiverChangeRequest"""

    active: bool | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        active = self.active

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if active is not UNSET:
            field_dict["active"] = active

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        active = d.pop("active", UNSET)

        patched_alert_receiver_change_request = cls(
            active=active,
        )

        return patched_alert_receiver_change_request
