from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

from ..models.condition import Condition, check_condition
from ..models.worker_product_component_kind import (
    WorkerProductComponentKind,
    check_worker_product_component_kind,
)

if TYPE_CHECKING:
    from ..models.queue_process_facts import QueueProcessFacts


T = TypeVar("T", bound="WorkerProductComponent")


@_attrs_define
class WorkerProductComponent:
    """A part of the product."""

    kind: WorkerProductComponentKind
    name: str
    condition: Condition
    facts: QueueProcessFacts

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
        from ..models.queue_process_facts import QueueProcessFacts

        d = dict(src_dict)
        kind = check_worker_product_component_kind(d.pop("kind"))

        name = d.pop("name")

        condition = check_condition(d.pop("condition"))

        facts = QueueProcessFacts.from_dict(d.pop("facts"))

        worker_product_component = cls(
            kind=kind,
            name=name,
            condition=condition,
            facts=facts,
        )

        return worker_product_component
