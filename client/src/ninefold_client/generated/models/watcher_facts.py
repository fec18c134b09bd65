from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

T = TypeVar("T", bound="WatcherFacts")


@_attrs_define
class WatcherFacts:
    """WatcherFacts"""

    holder: None | str
    clusters: int
    stale: list[str]

    def to_dict(self) -> dict[str, Any]:
        holder: None | str
        holder = self.holder

        clusters = self.clusters

        stale = self.stale

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "holder": holder,
                "clusters": clusters,
                "stale": stale,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)

        def _parse_holder(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        holder = _parse_holder(d.pop("holder"))

        clusters = d.pop("clusters")

        stale = cast(list[str], d.pop("stale"))

        watcher_facts = cls(
            holder=holder,
            clusters=clusters,
            stale=stale,
        )

        return watcher_facts
