from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="BrokerFacts")


@_attrs_define
class BrokerFacts:
    """Messages, or why they cannot be counted."""

    messages: int | Unset = UNSET
    refusal: str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        messages = self.messages

        refusal = self.refusal

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if messages is not UNSET:
            field_dict["messages"] = messages
        if refusal is not UNSET:
            field_dict["refusal"] = refusal

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        messages = d.pop("messages", UNSET)

        refusal = d.pop("refusal", UNSET)

        broker_facts = cls(
            messages=messages,
            refusal=refusal,
        )

        return broker_facts
