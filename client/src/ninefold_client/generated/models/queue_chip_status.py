from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.queue_status import QueueStatus


T = TypeVar("T", bound="QueueChipStatus")


@_attrs_define
class QueueChipStatus:
    """QueueChipStatus"""

    chip: str
    standing: QueueStatus

    def to_dict(self) -> dict[str, Any]:
        chip = self.chip

        standing = self.standing.to_dict()

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "chip": chip,
                "standing": standing,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.queue_status import QueueStatus

        d = dict(src_dict)
        chip = d.pop("chip")

        standing = QueueStatus.from_dict(d.pop("standing"))

        queue_chip_status = cls(
            chip=chip,
            standing=standing,
        )

        return queue_chip_status
