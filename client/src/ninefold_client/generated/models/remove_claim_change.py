from __future__ import annotations

from collections.abc import Mapping
from typing import (
    Any,
    Literal,
    TypeVar,
    cast,
)

from attrs import define as _attrs_define

T = TypeVar("T", bound="RemoveClaimChange")


@_attrs_define
class RemoveClaimChange:
    """The claim, pending or running, is removed."""

    kind: Literal["cancelled"]
    claim: str

    def to_dict(self) -> dict[str, Any]:
        kind = self.kind

        claim = self.claim

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "kind": kind,
                "claim": claim,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        kind = cast(Literal["cancelled"], d.pop("kind"))
        if kind != "cancelled":
            raise ValueError(f"kind must match const 'cancelled', got '{kind}'")

        claim = d.pop("claim")

        remove_claim_change = cls(
            kind=kind,
            claim=claim,
        )

        return remove_claim_change
