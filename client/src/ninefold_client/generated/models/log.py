from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="Log")


@_attrs_define
class Log:
    """A piece of a log."""

    text: str
    next_offset: int
    complete: bool

    def to_dict(self) -> dict[str, Any]:
        text = self.text

        next_offset = self.next_offset

        complete = self.complete

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "text": text,
                "next_offset": next_offset,
                "complete": complete,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        text = d.pop("text")

        next_offset = d.pop("next_offset")

        complete = d.pop("complete")

        log = cls(
            text=text,
            next_offset=next_offset,
            complete=complete,
        )

        return log
