from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

from ..models.hub_enum import HubEnum, check_hub_enum
from ..types import UNSET, Unset

T = TypeVar("T", bound="HubImportRequestRequest")


@_attrs_define
class HubImportRequestRequest:
    """The request for something that a team will own."""

    name: str
    hub: HubEnum
    repository: str
    team: str | Unset = UNSET
    revision: str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        hub: str = self.hub

        repository = self.repository

        team = self.team

        revision = self.revision

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "name": name,
                "hub": hub,
                "repository": repository,
            }
        )
        if team is not UNSET:
            field_dict["team"] = team
        if revision is not UNSET:
            field_dict["revision"] = revision

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        name = d.pop("name")

        hub = check_hub_enum(d.pop("hub"))

        repository = d.pop("repository")

        team = d.pop("team", UNSET)

        revision = d.pop("revision", UNSET)

        hub_import_request_request = cls(
            name=name,
            hub=hub,
            repository=repository,
            team=team,
            revision=revision,
        )

        return hub_import_request_request
