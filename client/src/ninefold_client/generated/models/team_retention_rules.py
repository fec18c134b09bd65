from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.object_reference import ObjectReference
    from ..models.retention_rules import RetentionRules


T = TypeVar("T", bound="TeamRetentionRules")


@_attrs_define
class TeamRetentionRules:
    """TeamRetentionRules"""

    team: None | ObjectReference
    rules: RetentionRules

    def to_dict(self) -> dict[str, Any]:
        from ..models.object_reference import ObjectReference

        team: dict[str, Any] | None
        if isinstance(self.team, ObjectReference):
            team = self.team.to_dict()
        else:
            team = self.team

        rules = self.rules.to_dict()

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "team": team,
                "rules": rules,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.object_reference import ObjectReference
        from ..models.retention_rules import RetentionRules

        d = dict(src_dict)

        def _parse_team(data: object) -> None | ObjectReference:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                team_type_0 = ObjectReference.from_dict(data)

                return team_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | ObjectReference, data)

        team = _parse_team(d.pop("team"))

        rules = RetentionRules.from_dict(d.pop("rules"))

        team_retention_rules = cls(
            team=team,
            rules=rules,
        )

        return team_retention_rules
