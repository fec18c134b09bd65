from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="SuppressedActionsRequestRequest")


@_attrs_define
class SuppressedActionsRequestRequest:
    """SuppressedActionsRequestRequest"""

    cluster: str
    chip: str
    until: str | Unset = UNSET
    shown: int | Unset = 0
    reason: str | Unset = ""
    dry_run: bool | Unset = False

    def to_dict(self) -> dict[str, Any]:
        cluster = self.cluster

        chip = self.chip

        until = self.until

        shown = self.shown

        reason = self.reason

        dry_run = self.dry_run

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "cluster": cluster,
                "chip": chip,
            }
        )
        if until is not UNSET:
            field_dict["until"] = until
        if shown is not UNSET:
            field_dict["shown"] = shown
        if reason is not UNSET:
            field_dict["reason"] = reason
        if dry_run is not UNSET:
            field_dict["dry_run"] = dry_run

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        cluster = d.pop("cluster")

        chip = d.pop("chip")

        until = d.pop("until", UNSET)

        shown = d.pop("shown", UNSET)

        reason = d.pop("reason", UNSET)

        dry_run = d.pop("dry_run", UNSET)

        suppressed_actions_request_request = cls(
            cluster=cluster,
            chip=chip,
            until=until,
            shown=shown,
            reason=reason,
            dry_run=dry_run,
        )

        return suppressed_actions_request_request
