from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.rollout_node_state import RolloutNodeState, check_rollout_node_state
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.object_reference import ObjectReference
    from ..models.reason import Reason


T = TypeVar("T", bound="MaintenanceRolloutNode")


@_attrs_define
class MaintenanceRolloutNode:
    """MaintenanceRolloutNode"""

    node: ObjectReference
    domain: str
    reason: Reason
    state: RolloutNodeState | Unset = UNSET
    exit_code: int | None | Unset = UNSET
    log_tail: str | Unset = UNSET
    changed_at: datetime.datetime | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        node = self.node.to_dict()

        domain = self.domain

        reason = self.reason.to_dict()

        state: str | Unset = UNSET
        if not isinstance(self.state, Unset):
            state = self.state

        exit_code: int | None | Unset
        if isinstance(self.exit_code, Unset):
            exit_code = UNSET
        else:
            exit_code = self.exit_code

        log_tail = self.log_tail

        changed_at: None | str | Unset
        if isinstance(self.changed_at, Unset):
            changed_at = UNSET
        elif isinstance(self.changed_at, datetime.datetime):
            changed_at = self.changed_at.isoformat()
        else:
            changed_at = self.changed_at

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "node": node,
                "domain": domain,
                "reason": reason,
            }
        )
        if state is not UNSET:
            field_dict["state"] = state
        if exit_code is not UNSET:
            field_dict["exit_code"] = exit_code
        if log_tail is not UNSET:
            field_dict["log_tail"] = log_tail
        if changed_at is not UNSET:
            field_dict["changed_at"] = changed_at

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.object_reference import ObjectReference
        from ..models.reason import Reason

        d = dict(src_dict)
        node = ObjectReference.from_dict(d.pop("node"))

        domain = d.pop("domain")

        reason = Reason.from_dict(d.pop("reason"))

        _state = d.pop("state", UNSET)
        state: RolloutNodeState | Unset
        if isinstance(_state, Unset):
            state = UNSET
        else:
            state = check_rollout_node_state(_state)

        def _parse_exit_code(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        exit_code = _parse_exit_code(d.pop("exit_code", UNSET))

        log_tail = d.pop("log_tail", UNSET)

        def _parse_changed_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                changed_at_type_0 = datetime.datetime.fromisoformat(data)

                return changed_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        changed_at = _parse_changed_at(d.pop("changed_at", UNSET))

        maintenance_rollout_node = cls(
            node=node,
            domain=domain,
            reason=reason,
            state=state,
            exit_code=exit_code,
            log_tail=log_tail,
            changed_at=changed_at,
        )

        return maintenance_rollout_node
