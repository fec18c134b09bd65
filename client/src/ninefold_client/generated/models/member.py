from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

from ..models.role import Role, check_role

T = TypeVar("T", bound="Member")


@_attrs_define
class Member:
    """Somebody in a team, with ``memberships_in_team``."""

    uid: str
    username: str
    roles: list[Role]
    roles_by_sign_on: list[Role]

    def to_dict(self) -> dict[str, Any]:
        uid = self.uid

        username = self.username

        roles = []
        for roles_item_data in self.roles:
            roles_item: str = roles_item_data
            roles.append(roles_item)

        roles_by_sign_on = []
        for roles_by_sign_on_item_data in self.roles_by_sign_on:
            roles_by_sign_on_item: str = roles_by_sign_on_item_data
            roles_by_sign_on.append(roles_by_sign_on_item)

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "uid": uid,
                "username": username,
                "roles": roles,
                "roles_by_sign_on": roles_by_sign_on,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        uid = d.pop("uid")

        username = d.pop("username")

        roles = []
        _roles = d.pop("roles")
        for roles_item_data in _roles:
            roles_item = check_role(roles_item_data)

            roles.append(roles_item)

        roles_by_sign_on = []
        _roles_by_sign_on = d.pop("roles_by_sign_on")
        for roles_by_sign_on_item_data in _roles_by_sign_on:
            roles_by_sign_on_item = check_role(roles_by_sign_on_item_data)

            roles_by_sign_on.append(roles_by_sign_on_item)

        member = cls(
            uid=uid,
            username=username,
            roles=roles,
            roles_by_sign_on=roles_by_sign_on,
        )

        return member
