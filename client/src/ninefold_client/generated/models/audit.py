from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="Audit")


@_attrs_define
class Audit:
    """Audit"""

    id: int
    at: datetime.datetime
    actor: str
    action: str
    team: None | str
    team_name: None | str | Unset = UNSET
    object_uid: str | Unset = UNSET
    object_name: str | Unset = UNSET
    detail: Any | Unset = UNSET
    remote_address: None | str | Unset = UNSET
    request_id: str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        id = self.id

        at = self.at.isoformat()

        actor = self.actor

        action = self.action

        team: None | str
        team = self.team

        team_name: None | str | Unset
        if isinstance(self.team_name, Unset):
            team_name = UNSET
        else:
            team_name = self.team_name

        object_uid = self.object_uid

        object_name = self.object_name

        detail = self.detail

        remote_address: None | str | Unset
        if isinstance(self.remote_address, Unset):
            remote_address = UNSET
        else:
            remote_address = self.remote_address

        request_id = self.request_id

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "id": id,
                "at": at,
                "actor": actor,
                "action": action,
                "team": team,
            }
        )
        if team_name is not UNSET:
            field_dict["team_name"] = team_name
        if object_uid is not UNSET:
            field_dict["object_uid"] = object_uid
        if object_name is not UNSET:
            field_dict["object_name"] = object_name
        if detail is not UNSET:
            field_dict["detail"] = detail
        if remote_address is not UNSET:
            field_dict["remote_address"] = remote_address
        if request_id is not UNSET:
            field_dict["request_id"] = request_id

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        id = d.pop("id")

        at = datetime.datetime.fromisoformat(d.pop("at"))

        actor = d.pop("actor")

        action = d.pop("action")

        def _parse_team(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        team = _parse_team(d.pop("team"))

        def _parse_team_name(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        team_name = _parse_team_name(d.pop("team_name", UNSET))

        object_uid = d.pop("object_uid", UNSET)

        object_name = d.pop("object_name", UNSET)

        detail = d.pop("detail", UNSET)

        def _parse_remote_address(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        remote_address = _parse_remote_address(d.pop("remote_address", UNSET))

        request_id = d.pop("request_id", UNSET)

        audit = cls(
            id=id,
            at=at,
            actor=actor,
            action=action,
            team=team,
            team_name=team_name,
            object_uid=object_uid,
            object_name=object_name,
            detail=detail,
            remote_address=remote_address,
            request_id=request_id,
        )

        return audit
