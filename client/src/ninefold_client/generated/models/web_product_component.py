from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

from ..models.condition import Condition, check_condition
from ..models.web_product_component_kind import (
    WebProductComponentKind,
    check_web_product_component_kind,
)

if TYPE_CHECKING:
    from ..models.web_server_facts import WebServerFacts


T = TypeVar("T", bound="WebProductComponent")


@_attrs_define
class WebProductComponent:
    """A part of the product."""

    kind: WebProductComponentKind
    name: str
    condition: Condition
    facts: WebServerFacts

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
        from ..models.web_server_facts import WebServerFacts

        d = dict(src_dict)
        kind = check_web_product_component_kind(d.pop("kind"))

        name = d.pop("name")

        condition = check_condition(d.pop("condition"))

        facts = WebServerFacts.from_dict(d.pop("facts"))

        web_product_component = cls(
            kind=kind,
            name=name,
            condition=condition,
            facts=facts,
        )

        return web_product_component
