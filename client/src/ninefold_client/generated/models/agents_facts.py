from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

T = TypeVar("T", bound="AgentsFacts")


@_attrs_define
class AgentsFacts:
    """AgentsFacts"""

    nodes: int
    reporting: int
    stale: int
    unseen: int
    oldest_seconds: float | None

    def to_dict(self) -> dict[str, Any]:
        nodes = self.nodes

        reporting = self.reporting

        stale = self.stale

        unseen = self.unseen

        oldest_seconds: float | None
        oldest_seconds = self.oldest_seconds

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "nodes": nodes,
                "reporting": reporting,
                "stale": stale,
                "unseen": unseen,
                "oldest_seconds": oldest_seconds,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        nodes = d.pop("nodes")

        reporting = d.pop("reporting")

        stale = d.pop("stale")

        unseen = d.pop("unseen")

        def _parse_oldest_seconds(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        oldest_seconds = _parse_oldest_seconds(d.pop("oldest_seconds"))

        agents_facts = cls(
            nodes=nodes,
            reporting=reporting,
            stale=stale,
            unseen=unseen,
            oldest_seconds=oldest_seconds,
        )

        return agents_facts
