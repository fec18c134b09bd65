from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.health_rule_condition import HealthRuleCondition


T = TypeVar("T", bound="HealthRule")


@_attrs_define
class HealthRule:
    """HealthRule"""

    uid: str
    name: str
    title: str
    condition: HealthRuleCondition
    level: int
    changed_at: datetime.datetime
    enabled: bool | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        uid = self.uid

        name = self.name

        title = self.title

        condition = self.condition.to_dict()

        level = self.level

        changed_at = self.changed_at.isoformat()

        enabled = self.enabled

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "uid": uid,
                "name": name,
                "title": title,
                "condition": condition,
                "level": level,
                "changed_at": changed_at,
            }
        )
        if enabled is not UNSET:
            field_dict["enabled"] = enabled

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.health_rule_condition import HealthRuleCondition

        d = dict(src_dict)
        uid = d.pop("uid")

        name = d.pop("name")

        title = d.pop("title")

        condition = HealthRuleCondition.from_dict(d.pop("condition"))

        level = d.pop("level")

        changed_at = datetime.datetime.fromisoformat(d.pop("changed_at"))

        enabled = d.pop("enabled", UNSET)

        health_rule = cls(
            uid=uid,
            name=name,
            title=title,
            condition=condition,
            level=level,
            changed_at=changed_at,
            enabled=enabled,
        )

        return health_rule
