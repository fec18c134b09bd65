from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

from ..models.team_roles_enum import TeamRolesEnum, check_team_roles_enum

T = TypeVar("T", bound="Team")


@_attrs_define
class Team:
    """Team"""

    uid: str
    slug: str
    name: str
    roles: list[TeamRolesEnum]
    created_at: datetime.datetime

    def to_dict(self) -> dict[str, Any]:
        uid = self.uid

        slug = self.slug

        name = self.name

        roles = []
        for roles_item_data in self.roles:
            roles_item: str = roles_item_data
            roles.append(roles_item)

        created_at = self.created_at.isoformat()

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "uid": uid,
                "slug": slug,
                "name": name,
                "roles": roles,
                "created_at": created_at,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        uid = d.pop("uid")

        slug = d.pop("slug")

        name = d.pop("name")

        roles = []
        _roles = d.pop("roles")
        for roles_item_data in _roles:
            roles_item = check_team_roles_enum(roles_item_data)

            roles.append(roles_item)

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        team = cls(
            uid=uid,
            slug=slug,
            name=name,
            roles=roles,
            created_at=created_at,
        )

        return team
