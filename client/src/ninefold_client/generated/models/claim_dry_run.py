from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

from ..models.outcome_enum import OutcomeEnum, check_outcome_enum

if TYPE_CHECKING:
    from ..models.dry_run_eviction import DryRunEviction
    from ..models.node_cards import NodeCards
    from ..models.reason import Reason


T = TypeVar("T", bound="ClaimDryRun")


@_attrs_define
class ClaimDryRun:
    """ClaimDryRun"""

    outcome: OutcomeEnum
    chip: str
    nodes: list[NodeCards]
    code: str
    reason: Reason
    stopped: list[DryRunEviction]

    def to_dict(self) -> dict[str, Any]:
        outcome: str = self.outcome

        chip = self.chip

        nodes = []
        for nodes_item_data in self.nodes:
            nodes_item = nodes_item_data.to_dict()
            nodes.append(nodes_item)

        code = self.code

        reason = self.reason.to_dict()

        stopped = []
        for stopped_item_data in self.stopped:
            stopped_item = stopped_item_data.to_dict()
            stopped.append(stopped_item)

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "outcome": outcome,
                "chip": chip,
                "nodes": nodes,
                "code": code,
                "reason": reason,
                "stopped": stopped,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.dry_run_eviction import DryRunEviction
        from ..models.node_cards import NodeCards
        from ..models.reason import Reason

        d = dict(src_dict)
        outcome = check_outcome_enum(d.pop("outcome"))

        chip = d.pop("chip")

        nodes = []
        _nodes = d.pop("nodes")
        for nodes_item_data in _nodes:
            nodes_item = NodeCards.from_dict(nodes_item_data)

            nodes.append(nodes_item)

        code = d.pop("code")

        reason = Reason.from_dict(d.pop("reason"))

        stopped = []
        _stopped = d.pop("stopped")
        for stopped_item_data in _stopped:
            stopped_item = DryRunEviction.from_dict(stopped_item_data)

            stopped.append(stopped_item)

        claim_dry_run = cls(
            outcome=outcome,
            chip=chip,
            nodes=nodes,
            code=code,
            reason=reason,
            stopped=stopped,
        )

        return claim_dry_run
