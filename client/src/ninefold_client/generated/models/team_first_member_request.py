from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

from ..models.role import Role, check_role

T = TypeVar("T", bound="TeamFirstMemberRequest")


@_attrs_define
class TeamFirstMemberRequest:
    """TeamFirstMemberRequest"""

    roles: list[Role]
    user: str

    def to_dict(self) -> dict[str, Any]:
        roles = []
        for roles_item_data in self.roles:
            roles_item: str = roles_item_data
            roles.append(roles_item)

        user = self.user

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "roles": roles,
                "user": user,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        roles = []
        _roles = d.pop("roles")
        for roles_item_data in _roles:
            roles_item = check_role(roles_item_data)

            roles.append(roles_item)

        user = d.pop("user")

        team_first_member_request = cls(
            roles=roles,
            user=user,
        )

        return team_first_member_request
