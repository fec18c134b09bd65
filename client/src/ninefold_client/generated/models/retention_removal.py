from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.reason import Reason


T = TypeVar("T", bound="RetentionRemoval")


@_attrs_define
class RetentionRemoval:
    """RetentionRemoval"""

    kind: str
    uid: str
    name: str
    team: str
    size: int
    rule: str
    reason: Reason

    def to_dict(self) -> dict[str, Any]:
        kind = self.kind

        uid = self.uid

        name = self.name

        team = self.team

        size = self.size

        rule = self.rule

        reason = self.reason.to_dict()

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "kind": kind,
                "uid": uid,
                "name": name,
                "team": team,
                "size": size,
                "rule": rule,
                "reason": reason,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.reason import Reason

        d = dict(src_dict)
        kind = d.pop("kind")

        uid = d.pop("uid")

        name = d.pop("name")

        team = d.pop("team")

        size = d.pop("size")

        rule = d.pop("rule")

        reason = Reason.from_dict(d.pop("reason"))

        retention_removal = cls(
            kind=kind,
            uid=uid,
            name=name,
            team=team,
            size=size,
            rule=rule,
            reason=reason,
        )

        return retention_removal
