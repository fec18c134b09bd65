from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

from ..models.fault_level import FaultLevel, check_fault_level
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.health_rule_create_request_condition import (
        HealthRuleCreateRequestCondition,
    )


T = TypeVar("T", bound="HealthRuleCreateRequest")


@_attrs_define
class HealthRuleCreateRequest:
    """HealthRuleCreateRequest"""

    condition: HealthRuleCreateRequestCondition
    level: FaultLevel
    name: str
    title: str | Unset = UNSET
    enabled: bool | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        condition = self.condition.to_dict()

        level: int = self.level

        name = self.name

        title = self.title

        enabled = self.enabled

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "condition": condition,
                "level": level,
                "name": name,
            }
        )
        if title is not UNSET:
            field_dict["title"] = title
        if enabled is not UNSET:
            field_dict["enabled"] = enabled

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.health_rule_create_request_condition import (
            HealthRuleCreateRequestCondition,
        )

        d = dict(src_dict)
        condition = HealthRuleCreateRequestCondition.from_dict(d.pop("condition"))

        level = check_fault_level(d.pop("level"))

        name = d.pop("name")

        title = d.pop("title", UNSET)

        enabled = d.pop("enabled", UNSET)

        health_rule_create_request = cls(
            condition=condition,
            level=level,
            name=name,
            title=title,
            enabled=enabled,
        )

        return health_rule_create_request
