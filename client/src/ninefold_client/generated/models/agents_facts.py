from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

T = TypeVar("T", bound="AgentsFacts")


@_attrs_define
class AgentsFacts:
    """AgentsFacts"""

    nodes: int
    heard: int
    silent: int
    unseen: int
    oldest_seconds: float | None

    def to_dict(self) -> dict[str, Any]:
        nodes = self.nodes

        heard = self.heard

        silent = self.silent

        unseen = self.unseen

        oldest_seconds: float | None
        oldest_seconds = self.oldest_seconds

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "nodes": nodes,
                "heard": heard,
                "silent": silent,
                "unseen": unseen,
                "oldest_seconds": oldest_seconds,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        nodes = d.pop("nodes")

        heard = d.pop("heard")

        silent = d.pop("silent")

        unseen = d.pop("unseen")

        def _parse_oldest_seconds(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        oldest_seconds = _parse_oldest_seconds(d.pop("oldest_seconds"))

        agents_facts = cls(
            nodes=nodes,
            heard=heard,
            silent=silent,
            unseen=unseen,
            oldest_seconds=oldest_seconds,
        )

        return agents_facts
