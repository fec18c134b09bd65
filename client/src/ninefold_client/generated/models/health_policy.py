from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.health_policy_settings import HealthPolicySettings


T = TypeVar("T", bound="HealthPolicy")


@_attrs_define
class HealthPolicy:
    """HealthPolicy"""

    automatic: bool
    settings: HealthPolicySettings
    changed_by_name: str
    changed_at: datetime.datetime | None

    def to_dict(self) -> dict[str, Any]:
        automatic = self.automatic

        settings = self.settings.to_dict()

        changed_by_name = self.changed_by_name

        changed_at: None | str
        if isinstance(self.changed_at, datetime.datetime):
            changed_at = self.changed_at.isoformat()
        else:
            changed_at = self.changed_at

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "automatic": automatic,
                "settings": settings,
                "changed_by_name": changed_by_name,
                "changed_at": changed_at,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.health_policy_settings import HealthPolicySettings

        d = dict(src_dict)
        automatic = d.pop("automatic")

        settings = HealthPolicySettings.from_dict(d.pop("settings"))

        changed_by_name = d.pop("changed_by_name")

        def _parse_changed_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                changed_at_type_0 = datetime.datetime.fromisoformat(data)

                return changed_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        changed_at = _parse_changed_at(d.pop("changed_at"))

        health_policy = cls(
            automatic=automatic,
            settings=settings,
            changed_by_name=changed_by_name,
            changed_at=changed_at,
        )

        return health_policy
