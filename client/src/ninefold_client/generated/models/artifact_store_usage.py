from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

T = TypeVar("T", bound="ArtifactStoreUsage")


@_attrs_define
class ArtifactStoreUsage:
    """ArtifactStoreUsage"""

    logical: int
    physical: int | None
    shared: int | None
    set_aside: int | None
    blobs: int | None
    counted_at: datetime.datetime | None

    def to_dict(self) -> dict[str, Any]:
        logical = self.logical

        physical: int | None
        physical = self.physical

        shared: int | None
        shared = self.shared

        set_aside: int | None
        set_aside = self.set_aside

        blobs: int | None
        blobs = self.blobs

        counted_at: None | str
        if isinstance(self.counted_at, datetime.datetime):
            counted_at = self.counted_at.isoformat()
        else:
            counted_at = self.counted_at

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "logical": logical,
                "physical": physical,
                "shared": shared,
                "set_aside": set_aside,
                "blobs": blobs,
                "counted_at": counted_at,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        logical = d.pop("logical")

        def _parse_physical(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        physical = _parse_physical(d.pop("physical"))

        def _parse_shared(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        shared = _parse_shared(d.pop("shared"))

        def _parse_set_aside(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        set_aside = _parse_set_aside(d.pop("set_aside"))

        def _parse_blobs(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        blobs = _parse_blobs(d.pop("blobs"))

        def _parse_counted_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                counted_at_type_0 = datetime.datetime.fromisoformat(data)

                return counted_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        counted_at = _parse_counted_at(d.pop("counted_at"))

        artifact_store_usage = cls(
            logical=logical,
            physical=physical,
            shared=shared,
            set_aside=set_aside,
            blobs=blobs,
            counted_at=counted_at,
        )

        return artifact_store_usage
