from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.patched_health_policy_change_request_settings import (
        PatchedHealthPolicyChangeRequestSettings,
    )


T = TypeVar("T", bound="PatchedHealthPolicyChangeRequest")


@_attrs_define
class PatchedHealthPolicyChangeRequest:
    """PatchedHealthPolicyChangeRequest"""

    automatic: bool | Unset = UNSET
    settings: PatchedHealthPolicyChangeRequestSettings | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        automatic = self.automatic

        settings: dict[str, Any] | Unset = UNSET
        if not isinstance(self.settings, Unset):
            settings = self.settings.to_dict()

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if automatic is not UNSET:
            field_dict["automatic"] = automatic
        if settings is not UNSET:
            field_dict["settings"] = settings

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.patched_health_policy_change_request_settings import (
            PatchedHealthPolicyChangeRequestSettings,
        )

        d = dict(src_dict)
        automatic = d.pop("automatic", UNSET)

        _settings = d.pop("settings", UNSET)
        settings: PatchedHealthPolicyChangeRequestSettings | Unset
        if isinstance(_settings, Unset):
            settings = UNSET
        else:
            settings = PatchedHealthPolicyChangeRequestSettings.from_dict(_settings)

        patched_health_policy_change_request = cls(
            automatic=automatic,
            settings=settings,
        )

        return patched_health_policy_change_request
