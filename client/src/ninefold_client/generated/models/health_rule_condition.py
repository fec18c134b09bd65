from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.health_rule_condition_how import (
    HealthRuleConditionHow,
    check_health_rule_condition_how,
)
from ..models.health_rule_condition_metric import (
    HealthRuleConditionMetric,
    check_health_rule_condition_metric,
)
from ..types import UNSET, Unset

T = TypeVar("T", bound="HealthRuleCondition")


@_attrs_define
class HealthRuleCondition:
    """HealthRuleCondition"""

    metric: HealthRuleConditionMetric | Unset = UNSET
    how: HealthRuleConditionHow | Unset = UNSET
    op: str | Unset = UNSET
    value: float | Unset = UNSET
    for_: str | Unset = UNSET
    within: str | Unset = UNSET
    chips: list[str] | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        metric: str | Unset = UNSET
        if not isinstance(self.metric, Unset):
            metric = self.metric

        how: str | Unset = UNSET
        if not isinstance(self.how, Unset):
            how = self.how

        op = self.op

        value = self.value

        for_ = self.for_

        within = self.within

        chips: list[str] | Unset = UNSET
        if not isinstance(self.chips, Unset):
            chips = self.chips

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if metric is not UNSET:
            field_dict["metric"] = metric
        if how is not UNSET:
            field_dict["how"] = how
        if op is not UNSET:
            field_dict["op"] = op
        if value is not UNSET:
            field_dict["value"] = value
        if for_ is not UNSET:
            field_dict["for"] = for_
        if within is not UNSET:
            field_dict["within"] = within
        if chips is not UNSET:
            field_dict["chips"] = chips

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        _metric = d.pop("metric", UNSET)
        metric: HealthRuleConditionMetric | Unset
        if isinstance(_metric, Unset):
            metric = UNSET
        else:
            metric = check_health_rule_condition_metric(_metric)

        _how = d.pop("how", UNSET)
        how: HealthRuleConditionHow | Unset
        if isinstance(_how, Unset):
            how = UNSET
        else:
            how = check_health_rule_condition_how(_how)

        op = d.pop("op", UNSET)

        value = d.pop("value", UNSET)

        for_ = d.pop("for", UNSET)

        within = d.pop("within", UNSET)

        chips = cast(list[str], d.pop("chips", UNSET))

        health_rule_condition = cls(
            metric=metric,
            how=how,
            op=op,
            value=value,
            for_=for_,
            within=within,
            chips=chips,
        )

        return health_rule_condition
