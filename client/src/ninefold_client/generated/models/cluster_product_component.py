from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

from ..models.cluster_product_component_kind import (
    ClusterProductComponentKind,
    check_cluster_product_component_kind,
)
from ..models.condition import Condition, check_condition

if TYPE_CHECKING:
    from ..models.cluster_facts import ClusterFacts


T = TypeVar("T", bound="ClusterProductComponent")


@_attrs_define
class ClusterProductComponent:
    """A part of the product."""

    kind: ClusterProductComponentKind
    name: str
    condition: Condition
    facts: ClusterFacts

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
        from ..models.cluster_facts import ClusterFacts

        d = dict(src_dict)
        kind = check_cluster_product_component_kind(d.pop("kind"))

        name = d.pop("name")

        condition = check_condition(d.pop("condition"))

        facts = ClusterFacts.from_dict(d.pop("facts"))

        cluster_product_component = cls(
            kind=kind,
            name=name,
            condition=condition,
            facts=facts,
        )

        return cluster_product_component
