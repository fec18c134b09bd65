from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

from ..models.card_state import CardState, check_card_state
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.object_reference import ObjectReference
    from ..models.reason import Reason


T = TypeVar("T", bound="Card")


@_attrs_define
class Card:
    """Card"""

    uid: str
    node: ObjectReference
    index: int
    chip: str
    state_reason: Reason
    memory: int | Unset = UNSET
    serial: str | Unset = UNSET
    state: CardState | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        uid = self.uid

        node = self.node.to_dict()

        index = self.index

        chip = self.chip

        state_reason = self.state_reason.to_dict()

        memory = self.memory

        serial = self.serial

        state: str | Unset = UNSET
        if not isinstance(self.state, Unset):
            state = self.state

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "uid": uid,
                "node": node,
                "index": index,
                "chip": chip,
                "state_reason": state_reason,
            }
        )
        if memory is not UNSET:
            field_dict["memory"] = memory
        if serial is not UNSET:
            field_dict["serial"] = serial
        if state is not UNSET:
            field_dict["state"] = state

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.object_reference import ObjectReference
        from ..models.reason import Reason

        d = dict(src_dict)
        uid = d.pop("uid")

        node = ObjectReference.from_dict(d.pop("node"))

        index = d.pop("index")

        chip = d.pop("chip")

        state_reason = Reason.from_dict(d.pop("state_reason"))

        memory = d.pop("memory", UNSET)

        serial = d.pop("serial", UNSET)

        _state = d.pop("state", UNSET)
        state: CardState | Unset
        if isinstance(_state, Unset):
            state = UNSET
        else:
            state = check_card_state(_state)

        card = cls(
            uid=uid,
            node=node,
            index=index,
            chip=chip,
            state_reason=state_reason,
            memory=memory,
            serial=serial,
            state=state,
        )

        return card
