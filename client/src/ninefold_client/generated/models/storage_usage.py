from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.artifact_store_usage import ArtifactStoreUsage
    from ..models.team_storage import TeamStorage


T = TypeVar("T", bound="StorageUsage")


@_attrs_define
class StorageUsage:
    """StorageUsage"""

    teams: list[TeamStorage]
    store: ArtifactStoreUsage | None

    def to_dict(self) -> dict[str, Any]:
        from ..models.artifact_store_usage import ArtifactStoreUsage

        teams = []
        for teams_item_data in self.teams:
            teams_item = teams_item_data.to_dict()
            teams.append(teams_item)

        store: dict[str, Any] | None
        if isinstance(self.store, ArtifactStoreUsage):
            store = self.store.to_dict()
        else:
            store = self.store

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "teams": teams,
                "store": store,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.artifact_store_usage import ArtifactStoreUsage
        from ..models.team_storage import TeamStorage

        d = dict(src_dict)
        teams = []
        _teams = d.pop("teams")
        for teams_item_data in _teams:
            teams_item = TeamStorage.from_dict(teams_item_data)

            teams.append(teams_item)

        def _parse_store(data: object) -> ArtifactStoreUsage | None:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                store_type_0 = ArtifactStoreUsage.from_dict(data)

                return store_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(ArtifactStoreUsage | None, data)

        store = _parse_store(d.pop("store"))

        storage_usage = cls(
            teams=teams,
            store=store,
        )

        return storage_usage
