from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.queue_state import QueueState, check_queue_state
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.entitlement_request import EntitlementRequest


T = TypeVar("T", bound="QueueWriteRequest")


@_attrs_define
class QueueWriteRequest:
    """What is left out has its default where a queue is made, and stays where one is changed."""

    name: str
    parent: None | str | Unset = UNSET
    team: None | str | Unset = UNSET
    state: QueueState | Unset = UNSET
    description: str | Unset = UNSET
    weight: float | Unset = UNSET
    borrows: bool | Unset = UNSET
    lends: bool | Unset = UNSET
    reclaims: bool | Unset = UNSET
    preempts: bool | Unset = UNSET
    max_running_per_user: int | None | Unset = UNSET
    entitlements: list[EntitlementRequest] | Unset = UNSET
    note: str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        parent: None | str | Unset
        if isinstance(self.parent, Unset):
            parent = UNSET
        else:
            parent = self.parent

        team: None | str | Unset
        if isinstance(self.team, Unset):
            team = UNSET
        else:
            team = self.team

        state: str | Unset = UNSET
        if not isinstance(self.state, Unset):
            state = self.state

        description = self.description

        weight = self.weight

        borrows = self.borrows

        lends = self.lends

        reclaims = self.reclaims

        preempts = self.preempts

        max_running_per_user: int | None | Unset
        if isinstance(self.max_running_per_user, Unset):
            max_running_per_user = UNSET
        else:
            max_running_per_user = self.max_running_per_user

        entitlements: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.entitlements, Unset):
            entitlements = []
            for entitlements_item_data in self.entitlements:
                entitlements_item = entitlements_item_data.to_dict()
                entitlements.append(entitlements_item)

        note = self.note

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "name": name,
            }
        )
        if parent is not UNSET:
            field_dict["parent"] = parent
        if team is not UNSET:
            field_dict["team"] = team
        if state is not UNSET:
            field_dict["state"] = state
        if description is not UNSET:
            field_dict["description"] = description
        if weight is not UNSET:
            field_dict["weight"] = weight
        if borrows is not UNSET:
            field_dict["borrows"] = borrows
        if lends is not UNSET:
            field_dict["lends"] = lends
        if reclaims is not UNSET:
            field_dict["reclaims"] = reclaims
        if preempts is not UNSET:
            field_dict["preempts"] = preempts
        if max_running_per_user is not UNSET:
            field_dict["max_running_per_user"] = max_running_per_user
        if entitlements is not UNSET:
            field_dict["entitlements"] = entitlements
        if note is not UNSET:
            field_dict["note"] = note

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.entitlement_request import EntitlementRequest

        d = dict(src_dict)
        name = d.pop("name")

        def _parse_parent(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        parent = _parse_parent(d.pop("parent", UNSET))

        def _parse_team(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        team = _parse_team(d.pop("team", UNSET))

        _state = d.pop("state", UNSET)
        state: QueueState | Unset
        if isinstance(_state, Unset):
            state = UNSET
        else:
            state = check_queue_state(_state)

        description = d.pop("description", UNSET)

        weight = d.pop("weight", UNSET)

        borrows = d.pop("borrows", UNSET)

        lends = d.pop("lends", UNSET)

        reclaims = d.pop("reclaims", UNSET)

        preempts = d.pop("preempts", UNSET)

        def _parse_max_running_per_user(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        max_running_per_user = _parse_max_running_per_user(d.pop("max_running_per_user", UNSET))

        _entitlements = d.pop("entitlements", UNSET)
        entitlements: list[EntitlementRequest] | Unset = UNSET
        if _entitlements is not UNSET:
            entitlements = []
            for entitlements_item_data in _entitlements:
                entitlements_item = EntitlementRequest.from_dict(entitlements_item_data)

                entitlements.append(entitlements_item)

        note = d.pop("note", UNSET)

        queue_write_request = cls(
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
            note=note,
        )

        return queue_write_request
