from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="TopologyDomain")


@_attrs_define
class TopologyDomain:
    """TopologyDomain"""

    kind: str
    name: str
    key: str
    nodes: int
    whole_nodes: int
    cards: int
    held: int
    free: int
    reserved: int
    no_new_work: int
    broken: int
    fragments: float
    largest: int

    def to_dict(self) -> dict[str, Any]:
        kind = self.kind

        name = self.name

        key = self.key

        nodes = self.nodes

        whole_nodes = self.whole_nodes

        cards = self.cards

        held = self.held

        free = self.free

        reserved = self.reserved

        no_new_work = self.no_new_work

        broken = self.broken

        fragments = self.fragments

        largest = self.largest

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "kind": kind,
                "name": name,
                "key": key,
                "nodes": nodes,
                "whole_nodes": whole_nodes,
                "cards": cards,
                "held": held,
                "free": free,
                "reserved": reserved,
                "no_new_work": no_new_work,
                "broken": broken,
                "fragments": fragments,
                "largest": largest,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        kind = d.pop("kind")

        name = d.pop("name")

        key = d.pop("key")

        nodes = d.pop("nodes")

        whole_nodes = d.pop("whole_nodes")

        cards = d.pop("cards")

        held = d.pop("held")

        free = d.pop("free")

        reserved = d.pop("reserved")

        no_new_work = d.pop("no_new_work")

        broken = d.pop("broken")

        fragments = d.pop("fragments")

        largest = d.pop("largest")

        topology_domain = cls(
            kind=kind,
            name=name,
            key=key,
            nodes=nodes,
            whole_nodes=whole_nodes,
            cards=cards,
            held=held,
            free=free,
            reserved=reserved,
            no_new_work=no_new_work,
            broken=broken,
            fragments=fragments,
            largest=largest,
        )

        return topology_domain
