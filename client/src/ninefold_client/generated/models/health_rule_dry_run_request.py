from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.health_rule_dry_run_request_condition import (
        HealthRuleDryRunRequestCondition,
    )


T = TypeVar("T", bound="HealthRuleDryRunRequest")


@_attrs_define
class HealthRuleDryRunRequest:
    """HealthRuleDryRunRequest"""

    condition: HealthRuleDryRunRequestCondition
    hours: int | Unset = 24

    def to_dict(self) -> dict[str, Any]:
        condition = self.condition.to_dict()

        hours = self.hours

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "condition": condition,
            }
        )
        if hours is not UNSET:
            field_dict["hours"] = hours

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.health_rule_dry_run_request_condition import (
            HealthRuleDryRunRequestCondition,
        )

        d = dict(src_dict)
        condition = HealthRuleDryRunRequestCondition.from_dict(d.pop("condition"))

        hours = d.pop("hours", UNSET)

        health_rule_dry_run_request = cls(
            condition=condition,
            hours=hours,
        )

        return health_rule_dry_run_request
