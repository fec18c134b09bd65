from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="RolloutUndoRequest")


@_attrs_define
class RolloutUndoRequest:
    """RolloutUndoRequest"""

    to_revision: int | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        to_revision: int | None | Unset
        if isinstance(self.to_revision, Unset):
            to_revision = UNSET
        else:
            to_revision = self.to_revision

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if to_revision is not UNSET:
            field_dict["to_revision"] = to_revision

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)

        def _parse_to_revision(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        to_revision = _parse_to_revision(d.pop("to_revision", UNSET))

        rollout_undo_request = cls(
            to_revision=to_revision,
        )

        return rollout_undo_request
