from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

from ..models.condition import Condition, check_condition

if TYPE_CHECKING:
    from ..models.controller import Controller
    from ..models.product_component import ProductComponent
    from ..models.status_versions import StatusVersions


T = TypeVar("T", bound="Status")


@_attrs_define
class Status:
    """State of Ninefold itself; the condition is that of the worst component."""

    at: datetime.datetime
    condition: Condition
    components: list[ProductComponent]
    controllers: list[Controller]
    versions: StatusVersions

    def to_dict(self) -> dict[str, Any]:
        at = self.at.isoformat()

        condition: str = self.condition

        components = []
        for components_item_data in self.components:
            components_item = components_item_data.to_dict()
            components.append(components_item)

        controllers = []
        for controllers_item_data in self.controllers:
            controllers_item = controllers_item_data.to_dict()
            controllers.append(controllers_item)

        versions = self.versions.to_dict()

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "at": at,
                "condition": condition,
                "components": components,
                "controllers": controllers,
                "versions": versions,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.controller import Controller
        from ..models.product_component import ProductComponent
        from ..models.status_versions import StatusVersions

        d = dict(src_dict)
        at = datetime.datetime.fromisoformat(d.pop("at"))

        condition = check_condition(d.pop("condition"))

        components = []
        _components = d.pop("components")
        for components_item_data in _components:
            components_item = ProductComponent.from_dict(components_item_data)

            components.append(components_item)

        controllers = []
        _controllers = d.pop("controllers")
        for controllers_item_data in _controllers:
            controllers_item = Controller.from_dict(controllers_item_data)

            controllers.append(controllers_item)

        versions = StatusVersions.from_dict(d.pop("versions"))

        status = cls(
            at=at,
            condition=condition,
            components=components,
            controllers=controllers,
            versions=versions,
        )

        return status
