from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="AttemptProgressRequestPointsItemCheckpoint")


@_attrs_define
class AttemptProgressRequestPointsItemCheckpoint:
    """AttemptProgressRequestPointsItemCheckpoint"""

    step: int | Unset = UNSET
    upload_error: str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        step = self.step

        upload_error = self.upload_error

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if step is not UNSET:
            field_dict["step"] = step
        if upload_error is not UNSET:
            field_dict["upload_error"] = upload_error

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        step = d.pop("step", UNSET)

        upload_error = d.pop("upload_error", UNSET)

        attempt_progress_request_points_item_checkpoint = cls(
            step=step,
            upload_error=upload_error,
        )

        return attempt_progress_request_points_item_checkpoint
