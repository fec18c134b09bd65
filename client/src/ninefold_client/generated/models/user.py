from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="User")


@_attrs_define
class User:
    """User"""

    uid: str
    username: str
    active: bool
    administrator: bool
    email: str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        uid = self.uid

        username = self.username

        active = self.active

        administrator = self.administrator

        email: str | Unset
        if isinstance(self.email, Unset):
            email = UNSET
        else:
            email = self.email

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "uid": uid,
                "username": username,
                "active": active,
                "administrator": administrator,
            }
        )
        if email is not UNSET:
            field_dict["email"] = email

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        uid = d.pop("uid")

        username = d.pop("username")

        active = d.pop("active")

        administrator = d.pop("administrator")

        def _parse_email(data: object) -> str | Unset:
            if isinstance(data, Unset):
                return data
            return cast(str | Unset, data)

        email = _parse_email(d.pop("email", UNSET))

        user = cls(
            uid=uid,
            username=username,
            active=active,
            administrator=administrator,
            email=email,
        )

        return user
