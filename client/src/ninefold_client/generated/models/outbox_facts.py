from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.outbox_facts_unsubscribed import OutboxFactsUnsubscribed


T = TypeVar("T", bound="OutboxFacts")


@_attrs_define
class OutboxFacts:
    """OutboxFacts"""

    messages: int
    age_seconds: float
    unsubscribed: OutboxFactsUnsubscribed

    def to_dict(self) -> dict[str, Any]:
        messages = self.messages

        age_seconds = self.age_seconds

        unsubscribed = self.unsubscribed.to_dict()

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "messages": messages,
                "age_seconds": age_seconds,
                "unsubscribed": unsubscribed,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.outbox_facts_unsubscribed import OutboxFactsUnsubscribed

        d = dict(src_dict)
        messages = d.pop("messages")

        age_seconds = d.pop("age_seconds")

        unsubscribed = OutboxFactsUnsubscribed.from_dict(d.pop("unsubscribed"))

        outbox_facts = cls(
            messages=messages,
            age_seconds=age_seconds,
            unsubscribed=unsubscribed,
        )

        return outbox_facts
