from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

from ..models.condition import Condition, check_condition
from ..models.watcher_product_component_kind import (
    WatcherProductComponentKind,
    check_watcher_product_component_kind,
)

if TYPE_CHECKING:
    from ..models.watcher_facts import WatcherFacts


T = TypeVar("T", bound="WatcherProductComponent")


@_attrs_define
class WatcherProductComponent:
    """A part of the product."""

    kind: WatcherProductComponentKind
    name: str
    condition: Condition
    facts: WatcherFacts

    def to_dict(self) -> dict[str, Any]:
        kind: str = self.kind

        name = self.name

        condition: str = self.condition

        facts = self.facts.to_dict()

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "kind": kind,
                "name": name,
                "condition": condition,
                "facts": facts,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.watcher_facts import WatcherFacts

        d = dict(src_dict)
        kind = check_watcher_product_component_kind(d.pop("kind"))

        name = d.pop("name")

        condition = check_condition(d.pop("condition"))

        facts = WatcherFacts.from_dict(d.pop("facts"))

        watcher_product_component = cls(
            kind=kind,
            name=name,
            condition=condition,
            facts=facts,
        )

        return watcher_product_component
