from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.outbox_facts_unheard import OutboxFactsUnheard


T = TypeVar("T", bound="OutboxFacts")


@_attrs_define
class OutboxFacts:
    """OutboxFacts"""

    messages: int
    age_seconds: float
    unheard: OutboxFactsUnheard

    def to_dict(self) -> dict[str, Any]:
        messages = self.messages

        age_seconds = self.age_seconds

        unheard = self.unheard.to_dict()

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "messages": messages,
                "age_seconds": age_seconds,
                "unheard": unheard,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.outbox_facts_unheard import OutboxFactsUnheard

        d = dict(src_dict)
        messages = d.pop("messages")

        age_seconds = d.pop("age_seconds")

        unheard = OutboxFactsUnheard.from_dict(d.pop("unheard"))

        outbox_facts = cls(
            messages=messages,
            age_seconds=age_seconds,
            unheard=unheard,
        )

        return outbox_facts
