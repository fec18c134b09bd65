from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.attempt_state import AttemptState, check_attempt_state
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.attempt_progress import AttemptProgress
    from ..models.json_object import JsonObject
    from ..models.reason import Reason


T = TypeVar("T", bound="Attempt")


@_attrs_define
class Attempt:
    """Attempt"""

    uid: str
    number: int
    message: Reason
    overrides: JsonObject | None
    retries: int
    retry_cause: str
    starts_after: datetime.datetime | None
    progress: AttemptProgress
    mfu: float | None
    created_at: datetime.datetime
    state: AttemptState | Unset = UNSET
    chip: str | Unset = UNSET
    claim_uid: str | Unset = UNSET
    continues: None | str | Unset = UNSET
    stop_reason: str | Unset = UNSET
    exit_code: int | None | Unset = UNSET
    exit_cause: str | Unset = UNSET
    log_tail: str | Unset = UNSET
    admitted_at: datetime.datetime | None | Unset = UNSET
    started_at: datetime.datetime | None | Unset = UNSET
    reported_at: datetime.datetime | None | Unset = UNSET
    ended_at: datetime.datetime | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.json_object import JsonObject

        uid = self.uid

        number = self.number

        message = self.message.to_dict()

        overrides: dict[str, Any] | None
        if isinstance(self.overrides, JsonObject):
            overrides = self.overrides.to_dict()
        else:
            overrides = self.overrides

        retries = self.retries

        retry_cause = self.retry_cause

        starts_after: None | str
        if isinstance(self.starts_after, datetime.datetime):
            starts_after = self.starts_after.isoformat()
        else:
            starts_after = self.starts_after

        progress = self.progress.to_dict()

        mfu: float | None
        mfu = self.mfu

        created_at = self.created_at.isoformat()

        state: str | Unset = UNSET
        if not isinstance(self.state, Unset):
            state = self.state

        chip = self.chip

        claim_uid = self.claim_uid

        continues: None | str | Unset
        if isinstance(self.continues, Unset):
            continues = UNSET
        else:
            continues = self.continues

        stop_reason = self.stop_reason

        exit_code: int | None | Unset
        if isinstance(self.exit_code, Unset):
            exit_code = UNSET
        else:
            exit_code = self.exit_code

        exit_cause = self.exit_cause

        log_tail = self.log_tail

        admitted_at: None | str | Unset
        if isinstance(self.admitted_at, Unset):
            admitted_at = UNSET
        elif isinstance(self.admitted_at, datetime.datetime):
            admitted_at = self.admitted_at.isoformat()
        else:
            admitted_at = self.admitted_at

        started_at: None | str | Unset
        if isinstance(self.started_at, Unset):
            started_at = UNSET
        elif isinstance(self.started_at, datetime.datetime):
            started_at = self.started_at.isoformat()
        else:
            started_at = self.started_at

        reported_at: None | str | Unset
        if isinstance(self.reported_at, Unset):
            reported_at = UNSET
        elif isinstance(self.reported_at, datetime.datetime):
            reported_at = self.reported_at.isoformat()
        else:
            reported_at = self.reported_at

        ended_at: None | str | Unset
        if isinstance(self.ended_at, Unset):
            ended_at = UNSET
        elif isinstance(self.ended_at, datetime.datetime):
            ended_at = self.ended_at.isoformat()
        else:
            ended_at = self.ended_at

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "uid": uid,
                "number": number,
                "message": message,
                "overrides": overrides,
                "retries": retries,
                "retry_cause": retry_cause,
                "starts_after": starts_after,
                "progress": progress,
                "mfu": mfu,
                "created_at": created_at,
            }
        )
        if state is not UNSET:
            field_dict["state"] = state
        if chip is not UNSET:
            field_dict["chip"] = chip
        if claim_uid is not UNSET:
            field_dict["claim_uid"] = claim_uid
        if continues is not UNSET:
            field_dict["continues"] = continues
        if stop_reason is not UNSET:
            field_dict["stop_reason"] = stop_reason
        if exit_code is not UNSET:
            field_dict["exit_code"] = exit_code
        if exit_cause is not UNSET:
            field_dict["exit_cause"] = exit_cause
        if log_tail is not UNSET:
            field_dict["log_tail"] = log_tail
        if admitted_at is not UNSET:
            field_dict["admitted_at"] = admitted_at
        if started_at is not UNSET:
            field_dict["started_at"] = started_at
        if reported_at is not UNSET:
            field_dict["reported_at"] = reported_at
        if ended_at is not UNSET:
            field_dict["ended_at"] = ended_at

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.attempt_progress import AttemptProgress
        from ..models.json_object import JsonObject
        from ..models.reason import Reason

        d = dict(src_dict)
        uid = d.pop("uid")

        number = d.pop("number")

        message = Reason.from_dict(d.pop("message"))

        def _parse_overrides(data: object) -> JsonObject | None:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                overrides_type_0 = JsonObject.from_dict(data)

                return overrides_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(JsonObject | None, data)

        overrides = _parse_overrides(d.pop("overrides"))

        retries = d.pop("retries")

        retry_cause = d.pop("retry_cause")

        def _parse_starts_after(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                starts_after_type_0 = datetime.datetime.fromisoformat(data)

                return starts_after_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        starts_after = _parse_starts_after(d.pop("starts_after"))

        progress = AttemptProgress.from_dict(d.pop("progress"))

        def _parse_mfu(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        mfu = _parse_mfu(d.pop("mfu"))

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        _state = d.pop("state", UNSET)
        state: AttemptState | Unset
        if isinstance(_state, Unset):
            state = UNSET
        else:
            state = check_attempt_state(_state)

        chip = d.pop("chip", UNSET)

        claim_uid = d.pop("claim_uid", UNSET)

        def _parse_continues(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        continues = _parse_continues(d.pop("continues", UNSET))

        stop_reason = d.pop("stop_reason", UNSET)

        def _parse_exit_code(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        exit_code = _parse_exit_code(d.pop("exit_code", UNSET))

        exit_cause = d.pop("exit_cause", UNSET)

        log_tail = d.pop("log_tail", UNSET)

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

        def _parse_started_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                started_at_type_0 = datetime.datetime.fromisoformat(data)

                return started_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        started_at = _parse_started_at(d.pop("started_at", UNSET))

        def _parse_reported_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                reported_at_type_0 = datetime.datetime.fromisoformat(data)

                return reported_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        reported_at = _parse_reported_at(d.pop("reported_at", UNSET))

        def _parse_ended_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                ended_at_type_0 = datetime.datetime.fromisoformat(data)

                return ended_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        ended_at = _parse_ended_at(d.pop("ended_at", UNSET))

        attempt = cls(
            uid=uid,
            number=number,
            message=message,
            overrides=overrides,
            retries=retries,
            retry_cause=retry_cause,
            starts_after=starts_after,
            progress=progress,
            mfu=mfu,
            created_at=created_at,
            state=state,
            chip=chip,
            claim_uid=claim_uid,
            continues=continues,
            stop_reason=stop_reason,
            exit_code=exit_code,
            exit_cause=exit_cause,
            log_tail=log_tail,
            admitted_at=admitted_at,
            started_at=started_at,
            reported_at=reported_at,
            ended_at=ended_at,
        )

        return attempt
