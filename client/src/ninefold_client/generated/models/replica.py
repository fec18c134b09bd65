from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.replica_state import ReplicaState, check_replica_state
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.reason import Reason


T = TypeVar("T", bound="Replica")


@_attrs_define
class Replica:
    """Replica"""

    uid: str
    message: Reason
    created_at: datetime.datetime
    state: ReplicaState | Unset = UNSET
    chip: str | Unset = UNSET
    claim_uid: str | Unset = UNSET
    generation: int | Unset = UNSET
    crashes: int | Unset = UNSET
    restart_at: datetime.datetime | None | Unset = UNSET
    ready_at: datetime.datetime | None | Unset = UNSET
    log_tail: str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        uid = self.uid

        message = self.message.to_dict()

        created_at = self.created_at.isoformat()

        state: str | Unset = UNSET
        if not isinstance(self.state, Unset):
            state = self.state

        chip = self.chip

        claim_uid = self.claim_uid

        generation = self.generation

        crashes = self.crashes

        restart_at: None | str | Unset
        if isinstance(self.restart_at, Unset):
            restart_at = UNSET
        elif isinstance(self.restart_at, datetime.datetime):
            restart_at = self.restart_at.isoformat()
        else:
            restart_at = self.restart_at

        ready_at: None | str | Unset
        if isinstance(self.ready_at, Unset):
            ready_at = UNSET
        elif isinstance(self.ready_at, datetime.datetime):
            ready_at = self.ready_at.isoformat()
        else:
            ready_at = self.ready_at

        log_tail = self.log_tail

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "uid": uid,
                "message": message,
                "created_at": created_at,
            }
        )
        if state is not UNSET:
            field_dict["state"] = state
        if chip is not UNSET:
            field_dict["chip"] = chip
        if claim_uid is not UNSET:
            field_dict["claim_uid"] = claim_uid
        if generation is not UNSET:
            field_dict["generation"] = generation
        if crashes is not UNSET:
            field_dict["crashes"] = crashes
        if restart_at is not UNSET:
            field_dict["restart_at"] = restart_at
        if ready_at is not UNSET:
            field_dict["ready_at"] = ready_at
        if log_tail is not UNSET:
            field_dict["log_tail"] = log_tail

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.reason import Reason

        d = dict(src_dict)
        uid = d.pop("uid")

        message = Reason.from_dict(d.pop("message"))

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        _state = d.pop("state", UNSET)
        state: ReplicaState | Unset
        if isinstance(_state, Unset):
            state = UNSET
        else:
            state = check_replica_state(_state)

        chip = d.pop("chip", UNSET)

        claim_uid = d.pop("claim_uid", UNSET)

        generation = d.pop("generation", UNSET)

        crashes = d.pop("crashes", UNSET)

        def _parse_restart_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                restart_at_type_0 = datetime.datetime.fromisoformat(data)

                return restart_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        restart_at = _parse_restart_at(d.pop("restart_at", UNSET))

        def _parse_ready_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                ready_at_type_0 = datetime.datetime.fromisoformat(data)

                return ready_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        ready_at = _parse_ready_at(d.pop("ready_at", UNSET))

        log_tail = d.pop("log_tail", UNSET)

        replica = cls(
            uid=uid,
            message=message,
            created_at=created_at,
            state=state,
            chip=chip,
            claim_uid=claim_uid,
            generation=generation,
            crashes=crashes,
            restart_at=restart_at,
            ready_at=ready_at,
            log_tail=log_tail,
        )

        return replica
