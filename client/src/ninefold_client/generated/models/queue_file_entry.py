from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.queue_state import QueueState, check_queue_state
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.queue_file_entry_below import QueueFileEntryBelow
    from ..models.queue_file_entry_cards import QueueFileEntryCards


T = TypeVar("T", bound="QueueFileEntry")


@_attrs_define
class QueueFileEntry:
    """A queue of a file, with the queues below it; what is left out has its default."""

    team: None | str | Unset = UNSET
    cards: QueueFileEntryCards | Unset = UNSET
    state: QueueState | Unset = UNSET
    description: str | Unset = UNSET
    weight: float | Unset = UNSET
    borrows: bool | Unset = UNSET
    lends: bool | Unset = UNSET
    reclaims: bool | Unset = UNSET
    preempts: bool | Unset = UNSET
    max_running_per_user: int | None | Unset = UNSET
    below: QueueFileEntryBelow | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        team: None | str | Unset
        if isinstance(self.team, Unset):
            team = UNSET
        else:
            team = self.team

        cards: dict[str, Any] | Unset = UNSET
        if not isinstance(self.cards, Unset):
            cards = self.cards.to_dict()

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

        below: dict[str, Any] | Unset = UNSET
        if not isinstance(self.below, Unset):
            below = self.below.to_dict()

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if team is not UNSET:
            field_dict["team"] = team
        if cards is not UNSET:
            field_dict["cards"] = cards
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
        if below is not UNSET:
            field_dict["below"] = below

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.queue_file_entry_below import QueueFileEntryBelow
        from ..models.queue_file_entry_cards import QueueFileEntryCards

        d = dict(src_dict)

        def _parse_team(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        team = _parse_team(d.pop("team", UNSET))

        _cards = d.pop("cards", UNSET)
        cards: QueueFileEntryCards | Unset
        if isinstance(_cards, Unset):
            cards = UNSET
        else:
            cards = QueueFileEntryCards.from_dict(_cards)

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

        _below = d.pop("below", UNSET)
        below: QueueFileEntryBelow | Unset
        if isinstance(_below, Unset):
            below = UNSET
        else:
            below = QueueFileEntryBelow.from_dict(_below)

        queue_file_entry = cls(
            team=team,
            cards=cards,
            state=state,
            description=description,
            weight=weight,
            borrows=borrows,
            lends=lends,
            reclaims=reclaims,
            preempts=preempts,
            max_running_per_user=max_running_per_user,
            below=below,
        )

        return queue_file_entry
