from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.checkpoint_file import CheckpointFile


T = TypeVar("T", bound="StoredCheckpoint")


@_attrs_define
class StoredCheckpoint:
    """StoredCheckpoint"""

    step: int | None
    files: list[CheckpointFile]

    def to_dict(self) -> dict[str, Any]:
        step: int | None
        step = self.step

        files = []
        for files_item_data in self.files:
            files_item = files_item_data.to_dict()
            files.append(files_item)

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "step": step,
                "files": files,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.checkpoint_file import CheckpointFile

        d = dict(src_dict)

        def _parse_step(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        step = _parse_step(d.pop("step"))

        files = []
        _files = d.pop("files")
        for files_item_data in _files:
            files_item = CheckpointFile.from_dict(files_item_data)

            files.append(files_item)

        stored_checkpoint = cls(
            step=step,
            files=files,
        )

        return stored_checkpoint
