from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.what_if_state import WhatIfState, check_what_if_state
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.add_guaranteed_cards_change import AddGuaranteedCardsChange
    from ..models.add_nodes_change import AddNodesChange
    from ..models.change_priority_change import ChangePriorityChange
    from ..models.drain_node_change import DrainNodeChange
    from ..models.object_reference import ObjectReference
    from ..models.remove_claim_change import RemoveClaimChange


T = TypeVar("T", bound="WhatIf")


@_attrs_define
class WhatIf:
    """WhatIf"""

    uid: str
    queue: ObjectReference
    changes: list[
        AddGuaranteedCardsChange
        | AddNodesChange
        | ChangePriorityChange
        | DrainNodeChange
        | RemoveClaimChange
    ]
    created_at: datetime.datetime
    state: WhatIfState | Unset = UNSET
    refusal: str | Unset = UNSET
    answered_at: datetime.datetime | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.add_guaranteed_cards_change import AddGuaranteedCardsChange
        from ..models.add_nodes_change import AddNodesChange
        from ..models.change_priority_change import ChangePriorityChange
        from ..models.drain_node_change import DrainNodeChange

        uid = self.uid

        queue = self.queue.to_dict()

        changes = []
        for changes_item_data in self.changes:
            changes_item: dict[str, Any]
            if isinstance(changes_item_data, AddGuaranteedCardsChange):
                changes_item = changes_item_data.to_dict()
            elif isinstance(changes_item_data, AddNodesChange):
                changes_item = changes_item_data.to_dict()
            elif isinstance(changes_item_data, DrainNodeChange):
                changes_item = changes_item_data.to_dict()
            elif isinstance(changes_item_data, ChangePriorityChange):
                changes_item = changes_item_data.to_dict()
            else:
                changes_item = changes_item_data.to_dict()

            changes.append(changes_item)

        created_at = self.created_at.isoformat()

        state: str | Unset = UNSET
        if not isinstance(self.state, Unset):
            state = self.state

        refusal = self.refusal

        answered_at: None | str | Unset
        if isinstance(self.answered_at, Unset):
            answered_at = UNSET
        elif isinstance(self.answered_at, datetime.datetime):
            answered_at = self.answered_at.isoformat()
        else:
            answered_at = self.answered_at

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "uid": uid,
                "queue": queue,
                "changes": changes,
                "created_at": created_at,
            }
        )
        if state is not UNSET:
            field_dict["state"] = state
        if refusal is not UNSET:
            field_dict["refusal"] = refusal
        if answered_at is not UNSET:
            field_dict["answered_at"] = answered_at

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.add_guaranteed_cards_change import AddGuaranteedCardsChange
        from ..models.add_nodes_change import AddNodesChange
        from ..models.change_priority_change import ChangePriorityChange
        from ..models.drain_node_change import DrainNodeChange
        from ..models.object_reference import ObjectReference
        from ..models.remove_claim_change import RemoveClaimChange

        d = dict(src_dict)
        uid = d.pop("uid")

        queue = ObjectReference.from_dict(d.pop("queue"))

        changes = []
        _changes = d.pop("changes")
        for changes_item_data in _changes:

            def _parse_changes_item(
                data: object,
            ) -> (
                AddGuaranteedCardsChange
                | AddNodesChange
                | ChangePriorityChange
                | DrainNodeChange
                | RemoveClaimChange
            ):
                try:
                    if not isinstance(data, dict):
                        raise TypeError()
                    changes_item_type_0 = AddGuaranteedCardsChange.from_dict(data)

                    return changes_item_type_0
                except (TypeError, ValueError, AttributeError, KeyError):
                    pass
                try:
                    if not isinstance(data, dict):
                        raise TypeError()
                    changes_item_type_1 = AddNodesChange.from_dict(data)

                    return changes_item_type_1
                except (TypeError, ValueError, AttributeError, KeyError):
                    pass
                try:
                    if not isinstance(data, dict):
                        raise TypeError()
                    changes_item_type_2 = DrainNodeChange.from_dict(data)

                    return changes_item_type_2
                except (TypeError, ValueError, AttributeError, KeyError):
                    pass
                try:
                    if not isinstance(data, dict):
                        raise TypeError()
                    changes_item_type_3 = ChangePriorityChange.from_dict(data)

                    return changes_item_type_3
                except (TypeError, ValueError, AttributeError, KeyError):
                    pass
                if not isinstance(data, dict):
                    raise TypeError()
                changes_item_type_4 = RemoveClaimChange.from_dict(data)

                return changes_item_type_4

            changes_item = _parse_changes_item(changes_item_data)

            changes.append(changes_item)

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        _state = d.pop("state", UNSET)
        state: WhatIfState | Unset
        if isinstance(_state, Unset):
            state = UNSET
        else:
            state = check_what_if_state(_state)

        refusal = d.pop("refusal", UNSET)

        def _parse_answered_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                answered_at_type_0 = datetime.datetime.fromisoformat(data)

                return answered_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        answered_at = _parse_answered_at(d.pop("answered_at", UNSET))

        what_if = cls(
            uid=uid,
            queue=queue,
            changes=changes,
            created_at=created_at,
            state=state,
            refusal=refusal,
            answered_at=answered_at,
        )

        return what_if
