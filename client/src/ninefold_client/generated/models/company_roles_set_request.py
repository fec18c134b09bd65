from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

from ..models.company_role import CompanyRole, check_company_role

T = TypeVar("T", bound="CompanyRolesSetRequest")


@_attrs_define
class CompanyRolesSetRequest:
    """CompanyRolesSetRequest"""

    roles: list[CompanyRole]

    def to_dict(self) -> dict[str, Any]:
        roles = []
        for roles_item_data in self.roles:
            roles_item: str = roles_item_data
            roles.append(roles_item)

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "roles": roles,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        roles = []
        _roles = d.pop("roles")
        for roles_item_data in _roles:
            roles_item = check_company_role(roles_item_data)

            roles.append(roles_item)

        company_roles_set_request = cls(
            roles=roles,
        )

        return company_roles_set_request
