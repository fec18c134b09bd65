from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.queue_change import QueueChange


T = TypeVar("T", bound="QueueTreeSaved")


@_attrs_define
class QueueTreeSaved:
    """QueueTreeSaved"""

    change: None | QueueChange

    def to_dict(self) -> dict[str, Any]:
        from ..models.queue_change import QueueChange

        change: dict[str, Any] | None
        if isinstance(self.change, QueueChange):
            change = self.change.to_dict()
        else:
            change = self.change

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "change": change,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.queue_change import QueueChange

        d = dict(src_dict)

        def _parse_change(data: object) -> None | QueueChange:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                change_type_0 = QueueChange.from_dict(data)

                return change_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | QueueChange, data)

        change = _parse_change(d.pop("change"))

        queue_tree_saved = cls(
            change=change,
        )

        return queue_tree_saved
