from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

from ..models.company_role import CompanyRole, check_company_role

if TYPE_CHECKING:
    from ..models.team import Team


T = TypeVar("T", bound="CurrentUser")


@_attrs_define
class CurrentUser:
    """CurrentUser"""

    uid: str
    username: str
    email: str
    administrator: bool
    company_roles: list[CompanyRole]
    teams: list[Team]

    def to_dict(self) -> dict[str, Any]:
        uid = self.uid

        username = self.username

        email = self.email

        administrator = self.administrator

        company_roles = []
        for company_roles_item_data in self.company_roles:
            company_roles_item: str = company_roles_item_data
            company_roles.append(company_roles_item)

        teams = []
        for teams_item_data in self.teams:
            teams_item = teams_item_data.to_dict()
            teams.append(teams_item)

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "uid": uid,
                "username": username,
                "email": email,
                "administrator": administrator,
                "company_roles": company_roles,
                "teams": teams,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.team import Team

        d = dict(src_dict)
        uid = d.pop("uid")

        username = d.pop("username")

        email = d.pop("email")

        administrator = d.pop("administrator")

        company_roles = []
        _company_roles = d.pop("company_roles")
        for company_roles_item_data in _company_roles:
            company_roles_item = check_company_role(company_roles_item_data)

            company_roles.append(company_roles_item)

        teams = []
        _teams = d.pop("teams")
        for teams_item_data in _teams:
            teams_item = Team.from_dict(teams_item_data)

            teams.append(teams_item)

        current_user = cls(
            uid=uid,
            username=username,
            email=email,
            administrator=administrator,
            company_roles=company_roles,
            teams=teams,
        )

        return current_user
