from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.queue_file_request_queues import QueueFileRequestQueues


T = TypeVar("T", bound="QueueFileRequest")


@_attrs_define
class QueueFileRequest:
    """A queue tree, or a part of one, as a file."""

    queues: QueueFileRequestQueues
    below: None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        queues = self.queues.to_dict()

        below: None | str | Unset
        if isinstance(self.below, Unset):
            below = UNSET
        else:
            below = self.below

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "queues": queues,
            }
        )
        if below is not UNSET:
            field_dict["below"] = below

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.queue_file_request_queues import QueueFileRequestQueues

        d = dict(src_dict)
        queues = QueueFileRequestQueues.from_dict(d.pop("queues"))

        def _parse_below(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        below = _parse_below(d.pop("below", UNSET))

        queue_file_request = cls(
            queues=queues,
            below=below,
        )

        return queue_file_request
