from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="ColumnMapping")


@_attrs_define
class ColumnMapping:
    """Which column plays which part; either instruction and output, or messages, or text."""

    instruction: str | Unset = UNSET
    input_: str | Unset = UNSET
    output: str | Unset = UNSET
    system: str | Unset = UNSET
    messages: str | Unset = UNSET
    split: str | Unset = UNSET
    rejected: str | Unset = UNSET
    text: str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        instruction = self.instruction

        input_ = self.input_

        output = self.output

        system = self.system

        messages = self.messages

        split = self.split

        rejected = self.rejected

        text = self.text

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if instruction is not UNSET:
            field_dict["instruction"] = instruction
        if input_ is not UNSET:
            field_dict["input"] = input_
        if output is not UNSET:
            field_dict["output"] = output
        if system is not UNSET:
            field_dict["system"] = system
        if messages is not UNSET:
            field_dict["messages"] = messages
        if split is not UNSET:
            field_dict["split"] = split
        if rejected is not UNSET:
            field_dict["rejected"] = rejected
        if text is not UNSET:
            field_dict["text"] = text

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        instruction = d.pop("instruction", UNSET)

        input_ = d.pop("input", UNSET)

        output = d.pop("output", UNSET)

        system = d.pop("system", UNSET)

        messages = d.pop("messages", UNSET)

        split = d.pop("split", UNSET)

        rejected = d.pop("rejected", UNSET)

        text = d.pop("text", UNSET)

        column_mapping = cls(
            instruction=instruction,
            input_=input_,
            output=output,
            system=system,
            messages=messages,
            split=split,
            rejected=rejected,
            text=text,
        )

        return column_mapping
