from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="SharedVolumeRequest")


@_attrs_define
class SharedVolumeRequest:
    """Storage that pods share: a folder of the nodes, or a claim of the namespace."""

    host_path: str | Unset = ""
    claim: str | Unset = ""

    def to_dict(self) -> dict[str, Any]:
        host_path = self.host_path

        claim = self.claim

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if host_path is not UNSET:
            field_dict["host_path"] = host_path
        if claim is not UNSET:
            field_dict["claim"] = claim

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        host_path = d.pop("host_path", UNSET)

        claim = d.pop("claim", UNSET)

        shared_volume_request = cls(
            host_path=host_path,
            claim=claim,
        )

        return shared_volume_request
