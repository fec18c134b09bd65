from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.team_first_member_request import TeamFirstMemberRequest


T = TypeVar("T", bound="TeamCreateRequest")


@_attrs_define
class TeamCreateRequest:
    """TeamCreateRequest"""

    name: str
    slug: str
    members: list[TeamFirstMemberRequest] | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        slug = self.slug

        members: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.members, Unset):
            members = []
            for members_item_data in self.members:
                members_item = members_item_data.to_dict()
                members.append(members_item)

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "name": name,
                "slug": slug,
            }
        )
        if members is not UNSET:
            field_dict["members"] = members

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.team_first_member_request import TeamFirstMemberRequest

        d = dict(src_dict)
        name = d.pop("name")

        slug = d.pop("slug")

        _members = d.pop("members", UNSET)
        members: list[TeamFirstMemberRequest] | Unset = UNSET
        if _members is not UNSET:
            members = []
            for members_item_data in _members:
                members_item = TeamFirstMemberRequest.from_dict(members_item_data)

                members.append(members_item)

        team_create_request = cls(
            name=name,
            slug=slug,
            members=members,
        )

        return team_create_request
