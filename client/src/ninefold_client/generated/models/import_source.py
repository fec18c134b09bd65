from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

T = TypeVar("T", bound="ImportSource")


@_attrs_define
class ImportSource:
    """A repository of a model hub, or a folder on the server; the fields of the other one are null."""

    hub: None | str
    repository: None | str
    revision: None | str
    commit: None | str
    path: None | str

    def to_dict(self) -> dict[str, Any]:
        hub: None | str
        hub = self.hub

        repository: None | str
        repository = self.repository

        revision: None | str
        revision = self.revision

        commit: None | str
        commit = self.commit

        path: None | str
        path = self.path

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "hub": hub,
                "repository": repository,
                "revision": revision,
                "commit": commit,
                "path": path,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)

        def _parse_hub(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        hub = _parse_hub(d.pop("hub"))

        def _parse_repository(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        repository = _parse_repository(d.pop("repository"))

        def _parse_revision(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        revision = _parse_revision(d.pop("revision"))

        def _parse_commit(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        commit = _parse_commit(d.pop("commit"))

        def _parse_path(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        path = _parse_path(d.pop("path"))

        import_source = cls(
            hub=hub,
            repository=repository,
            revision=revision,
            commit=commit,
            path=path,
        )

        return import_source
