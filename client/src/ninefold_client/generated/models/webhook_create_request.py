from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

from ..models.kinds_enum import KindsEnum, check_kinds_enum
from ..types import UNSET, Unset

T = TypeVar("T", bound="WebhookCreateRequest")


@_attrs_define
class WebhookCreateRequest:
    """The request for something that a team will own."""

    name: str
    url: str
    kinds: list[KindsEnum]
    team: str | Unset = UNSET
    active: bool | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        url = self.url

        kinds = []
        for kinds_item_data in self.kinds:
            kinds_item: str = kinds_item_data
            kinds.append(kinds_item)

        team = self.team

        active = self.active

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "name": name,
                "url": url,
                "kinds": kinds,
            }
        )
        if team is not UNSET:
            field_dict["team"] = team
        if active is not UNSET:
            field_dict["active"] = active

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        name = d.pop("name")

        url = d.pop("url")

        kinds = []
        _kinds = d.pop("kinds")
        for kinds_item_data in _kinds:
            kinds_item = check_kinds_enum(kinds_item_data)

            kinds.append(kinds_item)

        team = d.pop("team", UNSET)

        active = d.pop("active", UNSET)

        webhook_create_request = cls(
            name=name,
            url=url,
            kinds=kinds,
            team=team,
            active=active,
        )

        return webhook_create_request
