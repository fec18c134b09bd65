from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.reason import Reason


T = TypeVar("T", bound="HubImport")


@_attrs_define
class HubImport:
    """HubImport"""

    hub: str
    repository: str
    revision: str
    commit: str
    size: int
    received: int
    spared: int
    error: Reason

    def to_dict(self) -> dict[str, Any]:
        hub = self.hub

        repository = self.repository

        revision = self.revision

        commit = self.commit

        size = self.size

        received = self.received

        spared = self.spared

        error = self.error.to_dict()

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "hub": hub,
                "repository": repository,
                "revision": revision,
                "commit": commit,
                "size": size,
                "received": received,
                "spared": spared,
                "error": error,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.reason import Reason

        d = dict(src_dict)
        hub = d.pop("hub")

        repository = d.pop("repository")

        revision = d.pop("revision")

        commit = d.pop("commit")

        size = d.pop("size")

        received = d.pop("received")

        spared = d.pop("spared")

        error = Reason.from_dict(d.pop("error"))

        hub_import = cls(
            hub=hub,
            repository=repository,
            revision=revision,
            commit=commit,
            size=size,
            received=received,
            spared=spared,
            error=error,
        )

        return hub_import
