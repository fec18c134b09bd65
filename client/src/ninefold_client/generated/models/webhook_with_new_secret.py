from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.kinds_enum import KindsEnum, check_kinds_enum
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.object_reference import ObjectReference
    from ..models.reason import Reason


T = TypeVar("T", bound="WebhookWithNewSecret")


@_attrs_define
class WebhookWithNewSecret:
    """WebhookWithNewSecret"""

    uid: str
    name: str
    team: ObjectReference
    url: str
    kinds: list[KindsEnum]
    error: Reason
    created_at: datetime.datetime
    last_error: Reason
    secret: str
    active: bool | Unset = UNSET
    created_by: None | str | Unset = UNSET
    tried_at: datetime.datetime | None | Unset = UNSET
    last_status: int | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        uid = self.uid

        name = self.name

        team = self.team.to_dict()

        url = self.url

        kinds = []
        for kinds_item_data in self.kinds:
            kinds_item: str = kinds_item_data
            kinds.append(kinds_item)

        error = self.error.to_dict()

        created_at = self.created_at.isoformat()

        last_error = self.last_error.to_dict()

        secret = self.secret

        active = self.active

        created_by: None | str | Unset
        if isinstance(self.created_by, Unset):
            created_by = UNSET
        else:
            created_by = self.created_by

        tried_at: None | str | Unset
        if isinstance(self.tried_at, Unset):
            tried_at = UNSET
        elif isinstance(self.tried_at, datetime.datetime):
            tried_at = self.tried_at.isoformat()
        else:
            tried_at = self.tried_at

        last_status: int | None | Unset
        if isinstance(self.last_status, Unset):
            last_status = UNSET
        else:
            last_status = self.last_status

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "uid": uid,
                "name": name,
                "team": team,
                "url": url,
                "kinds": kinds,
                "error": error,
                "created_at": created_at,
                "last_error": last_error,
                "secret": secret,
            }
        )
        if active is not UNSET:
            field_dict["active"] = active
        if created_by is not UNSET:
            field_dict["created_by"] = created_by
        if tried_at is not UNSET:
            field_dict["tried_at"] = tried_at
        if last_status is not UNSET:
            field_dict["last_status"] = last_status

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.object_reference import ObjectReference
        from ..models.reason import Reason

        d = dict(src_dict)
        uid = d.pop("uid")

        name = d.pop("name")

        team = ObjectReference.from_dict(d.pop("team"))

        url = d.pop("url")

        kinds = []
        _kinds = d.pop("kinds")
        for kinds_item_data in _kinds:
            kinds_item = check_kinds_enum(kinds_item_data)

            kinds.append(kinds_item)

        error = Reason.from_dict(d.pop("error"))

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        last_error = Reason.from_dict(d.pop("last_error"))

        secret = d.pop("secret")

        active = d.pop("active", UNSET)

        def _parse_created_by(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        created_by = _parse_created_by(d.pop("created_by", UNSET))

        def _parse_tried_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                tried_at_type_0 = datetime.datetime.fromisoformat(data)

                return tried_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        tried_at = _parse_tried_at(d.pop("tried_at", UNSET))

        def _parse_last_status(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        last_status = _parse_last_status(d.pop("last_status", UNSET))

        webhook_with_new_secret = cls(
            uid=uid,
            name=name,
            team=team,
            url=url,
            kinds=kinds,
            error=error,
            created_at=created_at,
            last_error=last_error,
            secret=secret,
            active=active,
            created_by=created_by,
            tried_at=tried_at,
            last_status=last_status,
        )

        return webhook_with_new_secret
