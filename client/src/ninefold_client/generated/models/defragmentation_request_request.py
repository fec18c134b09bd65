from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.purpose_enum import PurposeEnum, check_purpose_enum
from ..types import UNSET, Unset

T = TypeVar("T", bound="DefragmentationRequestRequest")


@_attrs_define
class DefragmentationRequestRequest:
    """DefragmentationRequestRequest"""

    purpose: PurposeEnum
    nodes: int | Unset = 1
    chip: str | Unset = ""
    claim: None | str | Unset = UNSET
    dry_run: bool | Unset = False

    def to_dict(self) -> dict[str, Any]:
        purpose: str = self.purpose

        nodes = self.nodes

        chip = self.chip

        claim: None | str | Unset
        if isinstance(self.claim, Unset):
            claim = UNSET
        else:
            claim = self.claim

        dry_run = self.dry_run

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "purpose": purpose,
            }
        )
        if nodes is not UNSET:
            field_dict["nodes"] = nodes
        if chip is not UNSET:
            field_dict["chip"] = chip
        if claim is not UNSET:
            field_dict["claim"] = claim
        if dry_run is not UNSET:
            field_dict["dry_run"] = dry_run

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        purpose = check_purpose_enum(d.pop("purpose"))

        nodes = d.pop("nodes", UNSET)

        chip = d.pop("chip", UNSET)

        def _parse_claim(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        claim = _parse_claim(d.pop("claim", UNSET))

        dry_run = d.pop("dry_run", UNSET)

        defragmentation_request_request = cls(
            purpose=purpose,
            nodes=nodes,
            chip=chip,
            claim=claim,
            dry_run=dry_run,
        )

        return defragmentation_request_request
