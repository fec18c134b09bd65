from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.queue_state import QueueState, check_queue_state

if TYPE_CHECKING:
    from ..models.entitlement import Entitlement
    from ..models.object_reference import ObjectReference
    from ..models.queue_cards import QueueCards


T = TypeVar("T", bound="Queue")


@_attrs_define
class Queue:
    """Queue"""

    uid: str
    name: str
    parent: None | ObjectReference
    team: None | ObjectReference
    state: QueueState
    description: str
    weight: float
    borrows: bool
    lends: bool
    reclaims: bool
    preempts: bool
    max_running_per_user: int | None
    entitlements: list[Entitlement]
    cards: list[QueueCards]
    waiting: int
    running: int

    def to_dict(self) -> dict[str, Any]:
        from ..models.object_reference import ObjectReference

        uid = self.uid

        name = self.name

        parent: dict[str, Any] | None
        if isinstance(self.parent, ObjectReference):
            parent = self.parent.to_dict()
        else:
            parent = self.parent

        team: dict[str, Any] | None
        if isinstance(self.team, ObjectReference):
            team = self.team.to_dict()
        else:
            team = self.team

        state: str = self.state

        description = self.description

        weight = self.weight

        borrows = self.borrows

        lends = self.lends

        reclaims = self.reclaims

        preempts = self.preempts

        max_running_per_user: int | None
        max_running_per_user = self.max_running_per_user

        entitlements = []
        for entitlements_item_data in self.entitlements:
            entitlements_item = entitlements_item_data.to_dict()
            entitlements.append(entitlements_item)

        cards = []
        for cards_item_data in self.cards:
            cards_item = cards_item_data.to_dict()
            cards.append(cards_item)

        waiting = self.waiting

        running = self.running

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "uid": uid,
                "name": name,
                "parent": parent,
                "team": team,
                "state": state,
                "description": description,
                "weight": weight,
                "borrows": borrows,
                "lends": lends,
                "reclaims": reclaims,
                "preempts": preempts,
                "max_running_per_user": max_running_per_user,
                "entitlements": entitlements,
                "cards": cards,
                "waiting": waiting,
                "running": running,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.entitlement import Entitlement
        from ..models.object_reference import ObjectReference
        from ..models.queue_cards import QueueCards

        d = dict(src_dict)
        uid = d.pop("uid")

        name = d.pop("name")

        def _parse_parent(data: object) -> None | ObjectReference:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                parent_type_0 = ObjectReference.from_dict(data)

                return parent_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | ObjectReference, data)

        parent = _parse_parent(d.pop("parent"))

        def _parse_team(data: object) -> None | ObjectReference:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                team_type_0 = ObjectReference.from_dict(data)

                return team_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | ObjectReference, data)

        team = _parse_team(d.pop("team"))

        state = check_queue_state(d.pop("state"))

        description = d.pop("description")

        weight = d.pop("weight")

        borrows = d.pop("borrows")

        lends = d.pop("lends")

        reclaims = d.pop("reclaims")

        preempts = d.pop("preempts")

        def _parse_max_running_per_user(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        max_running_per_user = _parse_max_running_per_user(d.pop("max_running_per_user"))

        entitlements = []
        _entitlements = d.pop("entitlements")
        for entitlements_item_data in _entitlements:
            entitlements_item = Entitlement.from_dict(entitlements_item_data)

            entitlements.append(entitlements_item)

        cards = []
        _cards = d.pop("cards")
        for cards_item_data in _cards:
            cards_item = QueueCards.from_dict(cards_item_data)

            cards.append(cards_item)

        waiting = d.pop("waiting")

        running = d.pop("running")

        queue = cls(
            uid=uid,
            name=name,
            parent=parent,
            team=team,
            state=state,
            description=description,
            weight=weight,
            borrows=borrows,
            lends=lends,
            reclaims=reclaims,
            preempts=preempts,
            max_running_per_user=max_running_per_user,
            entitlements=entitlements,
            cards=cards,
            waiting=waiting,
            running=running,
        )

        return queue
