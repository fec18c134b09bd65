from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.api_resource import ApiResource


T = TypeVar("T", bound="ApiIndex")


@_attrs_define
class ApiIndex:
    """ApiIndex"""

    title: str
    version: str
    openapi_url: str
    docs_url: str
    problem_types_url: str
    resources: list[ApiResource]

    def to_dict(self) -> dict[str, Any]:
        title = self.title

        version = self.version

        openapi_url = self.openapi_url

        docs_url = self.docs_url

        problem_types_url = self.problem_types_url

        resources = []
        for resources_item_data in self.resources:
            resources_item = resources_item_data.to_dict()
            resources.append(resources_item)

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "title": title,
                "version": version,
                "openapi_url": openapi_url,
                "docs_url": docs_url,
                "problem_types_url": problem_types_url,
                "resources": resources,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.api_resource import ApiResource

        d = dict(src_dict)
        title = d.pop("title")

        version = d.pop("version")

        openapi_url = d.pop("openapi_url")

        docs_url = d.pop("docs_url")

        problem_types_url = d.pop("problem_types_url")

        resources = []
        _resources = d.pop("resources")
        for resources_item_data in _resources:
            resources_item = ApiResource.from_dict(resources_item_data)

            resources.append(resources_item)

        api_index = cls(
            title=title,
            version=version,
            openapi_url=openapi_url,
            docs_url=docs_url,
            problem_types_url=problem_types_url,
            resources=resources,
        )

        return api_index
