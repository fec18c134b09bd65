from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.object_reference import ObjectReference
    from ..models.rule_firing import RuleFiring


T = TypeVar("T", bound="HealthRuleTrial")


@_attrs_define
class HealthRuleTrial:
    """HealthRuleTrial"""

    card: ObjectReference
    firings: list[RuleFiring]

    def to_dict(self) -> dict[str, Any]:
        card = self.card.to_dict()

        firings = []
        for firings_item_data in self.firings:
            firings_item = firings_item_data.to_dict()
            firings.append(firings_item)

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "card": card,
                "firings": firings,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.object_reference import ObjectReference
        from ..models.rule_firing import RuleFiring

        d = dict(src_dict)
        card = ObjectReference.from_dict(d.pop("card"))

        firings = []
        _firings = d.pop("firings")
        for firings_item_data in _firings:
            firings_item = RuleFiring.from_dict(firings_item_data)

            firings.append(firings_item)

        health_rule_trial = cls(
            card=card,
            firings=firings,
        )

        return health_rule_trial
