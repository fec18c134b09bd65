from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

from ..models.split_enum import SplitEnum, check_split_enum
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.chat_message import ChatMessage


T = TypeVar("T", bound="PreviewRow")


@_attrs_define
class PreviewRow:
    """PreviewRow"""

    row: int
    split: SplitEnum
    messages: list[ChatMessage]
    rejected: str | Unset = ""

    def to_dict(self) -> dict[str, Any]:
        row = self.row

        split: str = self.split

        messages = []
        for messages_item_data in self.messages:
            messages_item = messages_item_data.to_dict()
            messages.append(messages_item)

        rejected = self.rejected

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "row": row,
                "split": split,
                "messages": messages,
            }
        )
        if rejected is not UNSET:
            field_dict["rejected"] = rejected

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.chat_message import ChatMessage

        d = dict(src_dict)
        row = d.pop("row")

        split = check_split_enum(d.pop("split"))

        messages = []
        _messages = d.pop("messages")
        for messages_item_data in _messages:
            messages_item = ChatMessage.from_dict(messages_item_data)

            messages.append(messages_item)

        rejected = d.pop("rejected", UNSET)

        preview_row = cls(
            row=row,
            split=split,
            messages=messages,
            rejected=rejected,
        )

        return preview_row
