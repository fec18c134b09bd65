from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

from ..models.fault_level import FaultLevel, check_fault_level
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.patched_health_rule_change_request_condition import (
        PatchedHealthRuleChangeRequestCondition,
    )


T = TypeVar("T", bound="PatchedHealthRuleChangeRequest")


@_attrs_define
class PatchedHealthRuleChangeRequest:
    """PatchedHealthRuleChangeRequest"""

    title: str | Unset = UNSET
    condition: PatchedHealthRuleChangeRequestCondition | Unset = UNSET
    level: FaultLevel | Unset = UNSET
    enabled: bool | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        title = self.title

        condition: dict[str, Any] | Unset = UNSET
        if not isinstance(self.condition, Unset):
            condition = self.condition.to_dict()

        level: int | Unset = UNSET
        if not isinstance(self.level, Unset):
            level = self.level

        enabled = self.enabled

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if title is not UNSET:
            field_dict["title"] = title
        if condition is not UNSET:
            field_dict["condition"] = condition
        if level is not UNSET:
            field_dict["level"] = level
        if enabled is not UNSET:
            field_dict["enabled"] = enabled

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.patched_health_rule_change_request_condition import (
            PatchedHealthRuleChangeRequestCondition,
        )

        d = dict(src_dict)
        title = d.pop("title", UNSET)

        _condition = d.pop("condition", UNSET)
        condition: PatchedHealthRuleChangeRequestCondition | Unset
        if isinstance(_condition, Unset):
            condition = UNSET
        else:
            condition = PatchedHealthRuleChangeRequestCondition.from_dict(_condition)

        _level = d.pop("level", UNSET)
        level: FaultLevel | Unset
        if isinstance(_level, Unset):
            level = UNSET
        else:
            level = check_fault_level(_level)

        enabled = d.pop("enabled", UNSET)

        patched_health_rule_change_request = cls(
            title=title,
            condition=condition,
            level=level,
            enabled=enabled,
        )

        return patched_health_rule_change_request
