from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.defragmentation_move import DefragmentationMove
    from ..models.reason import Reason


T = TypeVar("T", bound="DefragmentationPlan")


@_attrs_define
class DefragmentationPlan:
    """DefragmentationPlan"""

    uid: None | str
    purpose: str
    state: None | str
    state_reason: Reason
    reason: Reason
    whole_before: int
    whole_after: int
    whole_found: int | None
    fragments_before: float
    fragments_after: float
    fragments_found: float | None
    cost: float
    gain: float
    proposed_by: None | str
    expires_at: datetime.datetime | None
    moves: list[DefragmentationMove]

    def to_dict(self) -> dict[str, Any]:
        uid: None | str
        uid = self.uid

        purpose = self.purpose

        state: None | str
        state = self.state

        state_reason = self.state_reason.to_dict()

        reason = self.reason.to_dict()

        whole_before = self.whole_before

        whole_after = self.whole_after

        whole_found: int | None
        whole_found = self.whole_found

        fragments_before = self.fragments_before

        fragments_after = self.fragments_after

        fragments_found: float | None
        fragments_found = self.fragments_found

        cost = self.cost

        gain = self.gain

        proposed_by: None | str
        proposed_by = self.proposed_by

        expires_at: None | str
        if isinstance(self.expires_at, datetime.datetime):
            expires_at = self.expires_at.isoformat()
        else:
            expires_at = self.expires_at

        moves = []
        for moves_item_data in self.moves:
            moves_item = moves_item_data.to_dict()
            moves.append(moves_item)

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "uid": uid,
                "purpose": purpose,
                "state": state,
                "state_reason": state_reason,
                "reason": reason,
                "whole_before": whole_before,
                "whole_after": whole_after,
                "whole_found": whole_found,
                "fragments_before": fragments_before,
                "fragments_after": fragments_after,
                "fragments_found": fragments_found,
                "cost": cost,
                "gain": gain,
                "proposed_by": proposed_by,
                "expires_at": expires_at,
                "moves": moves,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.defragmentation_move import DefragmentationMove
        from ..models.reason import Reason

        d = dict(src_dict)

        def _parse_uid(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        uid = _parse_uid(d.pop("uid"))

        purpose = d.pop("purpose")

        def _parse_state(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        state = _parse_state(d.pop("state"))

        state_reason = Reason.from_dict(d.pop("state_reason"))

        reason = Reason.from_dict(d.pop("reason"))

        whole_before = d.pop("whole_before")

        whole_after = d.pop("whole_after")

        def _parse_whole_found(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        whole_found = _parse_whole_found(d.pop("whole_found"))

        fragments_before = d.pop("fragments_before")

        fragments_after = d.pop("fragments_after")

        def _parse_fragments_found(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        fragments_found = _parse_fragments_found(d.pop("fragments_found"))

        cost = d.pop("cost")

        gain = d.pop("gain")

        def _parse_proposed_by(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        proposed_by = _parse_proposed_by(d.pop("proposed_by"))

        def _parse_expires_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                expires_at_type_0 = datetime.datetime.fromisoformat(data)

                return expires_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        expires_at = _parse_expires_at(d.pop("expires_at"))

        moves = []
        _moves = d.pop("moves")
        for moves_item_data in _moves:
            moves_item = DefragmentationMove.from_dict(moves_item_data)

            moves.append(moves_item)

        defragmentation_plan = cls(
            uid=uid,
            purpose=purpose,
            state=state,
            state_reason=state_reason,
            reason=reason,
            whole_before=whole_before,
            whole_after=whole_after,
            whole_found=whole_found,
            fragments_before=fragments_before,
            fragments_after=fragments_after,
            fragments_found=fragments_found,
            cost=cost,
            gain=gain,
            proposed_by=proposed_by,
            expires_at=expires_at,
            moves=moves,
        )

        return defragmentation_plan
