from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.apply_set_object_request import ApplySetObjectRequest


T = TypeVar("T", bound="PatchedApplySetChangeRequest")


@_attrs_define
class PatchedApplySetChangeRequest:
    """PatchedApplySetChangeRequest"""

    version: int | Unset = UNSET
    objects: list[ApplySetObjectRequest] | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        version = self.version

        objects: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.objects, Unset):
            objects = []
            for objects_item_data in self.objects:
                objects_item = objects_item_data.to_dict()
                objects.append(objects_item)

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if version is not UNSET:
            field_dict["version"] = version
        if objects is not UNSET:
            field_dict["objects"] = objects

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.apply_set_object_request import ApplySetObjectRequest

        d = dict(src_dict)
        version = d.pop("version", UNSET)

        _objects = d.pop("objects", UNSET)
        objects: list[ApplySetObjectRequest] | Unset = UNSET
        if _objects is not UNSET:
            objects = []
            for objects_item_data in _objects:
                objects_item = ApplySetObjectRequest.from_dict(objects_item_data)

                objects.append(objects_item)

        patched_apply_set_change_request = cls(
            version=version,
            objects=objects,
        )

        return patched_apply_set_change_request
