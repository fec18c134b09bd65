from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.storage_run_kind import StorageRunKind, check_storage_run_kind
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.reason import Reason
    from ..models.retention_removal_record import RetentionRemovalRecord


T = TypeVar("T", bound="StorageCleanupRun")


@_attrs_define
class StorageCleanupRun:
    """StorageCleanupRun"""

    uid: str
    kind: StorageRunKind
    started_at: datetime.datetime
    details: list[RetentionRemovalRecord]
    error: Reason
    dry_run: bool | Unset = UNSET
    ended_at: datetime.datetime | None | Unset = UNSET
    examined: int | Unset = UNSET
    set_aside: int | Unset = UNSET
    removed: int | Unset = UNSET
    removed_bytes: int | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        uid = self.uid

        kind: str = self.kind

        started_at = self.started_at.isoformat()

        details = []
        for details_item_data in self.details:
            details_item = details_item_data.to_dict()
            details.append(details_item)

        error = self.error.to_dict()

        dry_run = self.dry_run

        ended_at: None | str | Unset
        if isinstance(self.ended_at, Unset):
            ended_at = UNSET
        elif isinstance(self.ended_at, datetime.datetime):
            ended_at = self.ended_at.isoformat()
        else:
            ended_at = self.ended_at

        examined = self.examined

        set_aside = self.set_aside

        removed = self.removed

        removed_bytes = self.removed_bytes

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "uid": uid,
                "kind": kind,
                "started_at": started_at,
                "details": details,
                "error": error,
            }
        )
        if dry_run is not UNSET:
            field_dict["dry_run"] = dry_run
        if ended_at is not UNSET:
            field_dict["ended_at"] = ended_at
        if examined is not UNSET:
            field_dict["examined"] = examined
        if set_aside is not UNSET:
            field_dict["set_aside"] = set_aside
        if removed is not UNSET:
            field_dict["removed"] = removed
        if removed_bytes is not UNSET:
            field_dict["removed_bytes"] = removed_bytes

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.reason import Reason
        from ..models.retention_removal_record import RetentionRemovalRecord

        d = dict(src_dict)
        uid = d.pop("uid")

        kind = check_storage_run_kind(d.pop("kind"))

        started_at = datetime.datetime.fromisoformat(d.pop("started_at"))

        details = []
        _details = d.pop("details")
        for details_item_data in _details:
            details_item = RetentionRemovalRecord.from_dict(details_item_data)

            details.append(details_item)

        error = Reason.from_dict(d.pop("error"))

        dry_run = d.pop("dry_run", UNSET)

        def _parse_ended_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                ended_at_type_0 = datetime.datetime.fromisoformat(data)

                return ended_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        ended_at = _parse_ended_at(d.pop("ended_at", UNSET))

        examined = d.pop("examined", UNSET)

        set_aside = d.pop("set_aside", UNSET)

        removed = d.pop("removed", UNSET)

        removed_bytes = d.pop("removed_bytes", UNSET)

        storage_cleanup_run = cls(
            uid=uid,
            kind=kind,
            started_at=started_at,
            details=details,
            error=error,
            dry_run=dry_run,
            ended_at=ended_at,
            examined=examined,
            set_aside=set_aside,
            removed=removed,
            removed_bytes=removed_bytes,
        )

        return storage_cleanup_run
