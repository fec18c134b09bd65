from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.blank_enum import BlankEnum, check_blank_enum
from ..models.claim_state import ClaimState, check_claim_state
from ..models.release_reason_enum import ReleaseReasonEnum, check_release_reason_enum
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.json_object import JsonObject
    from ..models.object_reference import ObjectReference
    from ..models.reason import Reason
    from ..models.replica_placement import ReplicaPlacement
    from ..models.role_shape import RoleShape


T = TypeVar("T", bound="Claim")


@_attrs_define
class Claim:
    """Claim"""

    uid: str
    team: ObjectReference
    queue: ObjectReference
    owner_kind: str
    owner_uid: str
    shape: list[RoleShape]
    card_count: int
    chips: list[str]
    explanation: Reason
    explanation_numbers: JsonObject
    placement: list[ReplicaPlacement]
    created_at: datetime.datetime
    state: ClaimState | Unset = "pending"
    priority: int | Unset = UNSET
    chip: str | Unset = UNSET
    progress: float | Unset = UNSET
    admitted_at: datetime.datetime | None | Unset = UNSET
    revoke_by: datetime.datetime | None | Unset = UNSET
    released_at: datetime.datetime | None | Unset = UNSET
    release_reason: BlankEnum | ReleaseReasonEnum | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        uid = self.uid

        team = self.team.to_dict()

        queue = self.queue.to_dict()

        owner_kind = self.owner_kind

        owner_uid = self.owner_uid

        shape = []
        for shape_item_data in self.shape:
            shape_item = shape_item_data.to_dict()
            shape.append(shape_item)

        card_count = self.card_count

        chips = self.chips

        explanation = self.explanation.to_dict()

        explanation_numbers = self.explanation_numbers.to_dict()

        placement = []
        for placement_item_data in self.placement:
            placement_item = placement_item_data.to_dict()
            placement.append(placement_item)

        created_at = self.created_at.isoformat()

        state: str | Unset = UNSET
        if not isinstance(self.state, Unset):
            state = self.state

        priority = self.priority

        chip = self.chip

        progress = self.progress

        admitted_at: None | str | Unset
        if isinstance(self.admitted_at, Unset):
            admitted_at = UNSET
        elif isinstance(self.admitted_at, datetime.datetime):
            admitted_at = self.admitted_at.isoformat()
        else:
            admitted_at = self.admitted_at

        revoke_by: None | str | Unset
        if isinstance(self.revoke_by, Unset):
            revoke_by = UNSET
        elif isinstance(self.revoke_by, datetime.datetime):
            revoke_by = self.revoke_by.isoformat()
        else:
            revoke_by = self.revoke_by

        released_at: None | str | Unset
        if isinstance(self.released_at, Unset):
            released_at = UNSET
        elif isinstance(self.released_at, datetime.datetime):
            released_at = self.released_at.isoformat()
        else:
            released_at = self.released_at

        release_reason: str | Unset
        if isinstance(self.release_reason, Unset):
            release_reason = UNSET
        elif isinstance(self.release_reason, str):
            release_reason = self.release_reason
        else:
            release_reason = self.release_reason

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "uid": uid,
                "team": team,
                "queue": queue,
                "owner_kind": owner_kind,
                "owner_uid": owner_uid,
                "shape": shape,
                "card_count": card_count,
                "chips": chips,
                "explanation": explanation,
                "explanation_numbers": explanation_numbers,
                "placement": placement,
                "created_at": created_at,
            }
        )
        if state is not UNSET:
            field_dict["state"] = state
        if priority is not UNSET:
            field_dict["priority"] = priority
        if chip is not UNSET:
            field_dict["chip"] = chip
        if progress is not UNSET:
            field_dict["progress"] = progress
        if admitted_at is not UNSET:
            field_dict["admitted_at"] = admitted_at
        if revoke_by is not UNSET:
            field_dict["revoke_by"] = revoke_by
        if released_at is not UNSET:
            field_dict["released_at"] = released_at
        if release_reason is not UNSET:
            field_dict["release_reason"] = release_reason

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.json_object import JsonObject
        from ..models.object_reference import ObjectReference
        from ..models.reason import Reason
        from ..models.replica_placement import ReplicaPlacement
        from ..models.role_shape import RoleShape

        d = dict(src_dict)
        uid = d.pop("uid")

        team = ObjectReference.from_dict(d.pop("team"))

        queue = ObjectReference.from_dict(d.pop("queue"))

        owner_kind = d.pop("owner_kind")

        owner_uid = d.pop("owner_uid")

        shape = []
        _shape = d.pop("shape")
        for shape_item_data in _shape:
            shape_item = RoleShape.from_dict(shape_item_data)

            shape.append(shape_item)

        card_count = d.pop("card_count")

        chips = cast(list[str], d.pop("chips"))

        explanation = Reason.from_dict(d.pop("explanation"))

        explanation_numbers = JsonObject.from_dict(d.pop("explanation_numbers"))

        placement = []
        _placement = d.pop("placement")
        for placement_item_data in _placement:
            placement_item = ReplicaPlacement.from_dict(placement_item_data)

            placement.append(placement_item)

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        _state = d.pop("state", UNSET)
        state: ClaimState | Unset
        if isinstance(_state, Unset):
            state = UNSET
        else:
            state = check_claim_state(_state)

        priority = d.pop("priority", UNSET)

        chip = d.pop("chip", UNSET)

        progress = d.pop("progress", UNSET)

        def _parse_admitted_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                admitted_at_type_0 = datetime.datetime.fromisoformat(data)

                return admitted_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        admitted_at = _parse_admitted_at(d.pop("admitted_at", UNSET))

        def _parse_revoke_by(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                revoke_by_type_0 = datetime.datetime.fromisoformat(data)

                return revoke_by_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        revoke_by = _parse_revoke_by(d.pop("revoke_by", UNSET))

        def _parse_released_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                released_at_type_0 = datetime.datetime.fromisoformat(data)

                return released_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        released_at = _parse_released_at(d.pop("released_at", UNSET))

        def _parse_release_reason(data: object) -> BlankEnum | ReleaseReasonEnum | Unset:
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                release_reason_type_0 = check_release_reason_enum(data)

                return release_reason_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            if not isinstance(data, str):
                raise TypeError()
            release_reason_type_1 = check_blank_enum(data)

            return release_reason_type_1

        release_reason = _parse_release_reason(d.pop("release_reason", UNSET))

        claim = cls(
            uid=uid,
            team=team,
            queue=queue,
            owner_kind=owner_kind,
            owner_uid=owner_uid,
            shape=shape,
            card_count=card_count,
            chips=chips,
            explanation=explanation,
            explanation_numbers=explanation_numbers,
            placement=placement,
            created_at=created_at,
            state=state,
            priority=priority,
            chip=chip,
            progress=progress,
            admitted_at=admitted_at,
            revoke_by=revoke_by,
            released_at=released_at,
            release_reason=release_reason,
        )

        return claim
