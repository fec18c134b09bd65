from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.metric_source_trial_unreachable import MetricSourceTrialUnreachable


T = TypeVar("T", bound="MetricSourceTrial")


@_attrs_define
class MetricSourceTrial:
    """MetricSourceTrial"""

    cards: int
    nodes: list[str]
    strangers: list[str]
    refusals: list[str]
    unreachable: MetricSourceTrialUnreachable

    def to_dict(self) -> dict[str, Any]:
        cards = self.cards

        nodes = self.nodes

        strangers = self.strangers

        refusals = self.refusals

        unreachable = self.unreachable.to_dict()

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "cards": cards,
                "nodes": nodes,
                "strangers": strangers,
                "refusals": refusals,
                "unreachable": unreachable,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.metric_source_trial_unreachable import (
            MetricSourceTrialUnreachable,
        )

        d = dict(src_dict)
        cards = d.pop("cards")

        nodes = cast(list[str], d.pop("nodes"))

        strangers = cast(list[str], d.pop("strangers"))

        refusals = cast(list[str], d.pop("refusals"))

        unreachable = MetricSourceTrialUnreachable.from_dict(d.pop("unreachable"))

        metric_source_trial = cls(
            cards=cards,
            nodes=nodes,
            strangers=strangers,
            refusals=refusals,
            unreachable=unreachable,
        )

        return metric_source_trial
