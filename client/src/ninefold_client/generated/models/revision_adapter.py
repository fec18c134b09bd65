from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.object_reference import ObjectReference


T = TypeVar("T", bound="RevisionAdapter")


@_attrs_define
class RevisionAdapter:
    """RevisionAdapter"""

    name: str
    model_version: ObjectReference
    rank: int

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        model_version = self.model_version.to_dict()

        rank = self.rank

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "name": name,
                "model_version": model_version,
                "rank": rank,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.object_reference import ObjectReference

        d = dict(src_dict)
        name = d.pop("name")

        model_version = ObjectReference.from_dict(d.pop("model_version"))

        rank = d.pop("rank")

        revision_adapter = cls(
            name=name,
            model_version=model_version,
            rank=rank,
        )

        return revision_adapter
