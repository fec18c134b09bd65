from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.suppressed_isolation_count import SuppressedIsolationCount


T = TypeVar("T", bound="SuppressedPool")


@_attrs_define
class SuppressedPool:
    """Suppressed isolations of one chip in one cluster, and the consequences of isolating all of them."""

    cluster: str
    cluster_uid: str
    chip: str
    isolations: int
    nodes: int
    since: datetime.datetime
    until: str
    codes: list[SuppressedIsolationCount]
    parts: list[SuppressedIsolationCount]
    cards: int
    works: int
    size: int
    out: int
    usable: int
    left: int

    def to_dict(self) -> dict[str, Any]:
        cluster = self.cluster

        cluster_uid = self.cluster_uid

        chip = self.chip

        isolations = self.isolations

        nodes = self.nodes

        since = self.since.isoformat()

        until = self.until

        codes = []
        for codes_item_data in self.codes:
            codes_item = codes_item_data.to_dict()
            codes.append(codes_item)

        parts = []
        for parts_item_data in self.parts:
            parts_item = parts_item_data.to_dict()
            parts.append(parts_item)

        cards = self.cards

        works = self.works

        size = self.size

        out = self.out

        usable = self.usable

        left = self.left

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "cluster": cluster,
                "cluster_uid": cluster_uid,
                "chip": chip,
                "isolations": isolations,
                "nodes": nodes,
                "since": since,
                "until": until,
                "codes": codes,
                "parts": parts,
                "cards": cards,
                "works": works,
                "size": size,
                "out": out,
                "usable": usable,
                "left": left,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.suppressed_isolation_count import SuppressedIsolationCount

        d = dict(src_dict)
        cluster = d.pop("cluster")

        cluster_uid = d.pop("cluster_uid")

        chip = d.pop("chip")

        isolations = d.pop("isolations")

        nodes = d.pop("nodes")

        since = datetime.datetime.fromisoformat(d.pop("since"))

        until = d.pop("until")

        codes = []
        _codes = d.pop("codes")
        for codes_item_data in _codes:
            codes_item = SuppressedIsolationCount.from_dict(codes_item_data)

            codes.append(codes_item)

        parts = []
        _parts = d.pop("parts")
        for parts_item_data in _parts:
            parts_item = SuppressedIsolationCount.from_dict(parts_item_data)

            parts.append(parts_item)

        cards = d.pop("cards")

        works = d.pop("works")

        size = d.pop("size")

        out = d.pop("out")

        usable = d.pop("usable")

        left = d.pop("left")

        suppressed_pool = cls(
            cluster=cluster,
            cluster_uid=cluster_uid,
            chip=chip,
            isolations=isolations,
            nodes=nodes,
            since=since,
            until=until,
            codes=codes,
            parts=parts,
            cards=cards,
            works=works,
            size=size,
            out=out,
            usable=usable,
            left=left,
        )

        return suppressed_pool
