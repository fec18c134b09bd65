from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

from ..models.condition import Condition, check_condition

if TYPE_CHECKING:
    from ..models.agents_product_component import AgentsProductComponent
    from ..models.beat_product_component import BeatProductComponent
    from ..models.broker_product_component import BrokerProductComponent
    from ..models.cluster_product_component import ClusterProductComponent
    from ..models.controller import Controller
    from ..models.database_product_component import DatabaseProductComponent
    from ..models.disk_product_component import DiskProductComponent
    from ..models.gateway_product_component import GatewayProductComponent
    from ..models.outbox_product_component import OutboxProductComponent
    from ..models.status_versions import StatusVersions
    from ..models.watcher_product_component import WatcherProductComponent
    from ..models.web_product_component import WebProductComponent
    from ..models.worker_product_component import WorkerProductComponent


T = TypeVar("T", bound="Status")


@_attrs_define
class Status:
    """State of Ninefold itself; the condition is that of the worst component."""

    at: datetime.datetime
    condition: Condition
    components: list[
        AgentsProductComponent
        | BeatProductComponent
        | BrokerProductComponent
        | ClusterProductComponent
        | DatabaseProductComponent
        | DiskProductComponent
        | GatewayProductComponent
        | OutboxProductComponent
        | WatcherProductComponent
        | WebProductComponent
        | WorkerProductComponent
    ]
    controllers: list[Controller]
    versions: StatusVersions

    def to_dict(self) -> dict[str, Any]:
        from ..models.agents_product_component import AgentsProductComponent
        from ..models.beat_product_component import BeatProductComponent
        from ..models.broker_product_component import BrokerProductComponent
        from ..models.cluster_product_component import ClusterProductComponent
        from ..models.database_product_component import DatabaseProductComponent
        from ..models.gateway_product_component import GatewayProductComponent
        from ..models.outbox_product_component import OutboxProductComponent
        from ..models.watcher_product_component import WatcherProductComponent
        from ..models.web_product_component import WebProductComponent
        from ..models.worker_product_component import WorkerProductComponent

        at = self.at.isoformat()

        condition: str = self.condition

        components = []
        for components_item_data in self.components:
            components_item: dict[str, Any]
            if isinstance(components_item_data, WebProductComponent):
                components_item = components_item_data.to_dict()
            elif isinstance(components_item_data, WorkerProductComponent):
                components_item = components_item_data.to_dict()
            elif isinstance(components_item_data, BeatProductComponent):
                components_item = components_item_data.to_dict()
            elif isinstance(components_item_data, DatabaseProductComponent):
                components_item = components_item_data.to_dict()
            elif isinstance(components_item_data, BrokerProductComponent):
                components_item = components_item_data.to_dict()
            elif isinstance(components_item_data, OutboxProductComponent):
                components_item = components_item_data.to_dict()
            elif isinstance(components_item_data, GatewayProductComponent):
                components_item = components_item_data.to_dict()
            elif isinstance(components_item_data, WatcherProductComponent):
                components_item = components_item_data.to_dict()
            elif isinstance(components_item_data, ClusterProductComponent):
                components_item = components_item_data.to_dict()
            elif isinstance(components_item_data, AgentsProductComponent):
                components_item = components_item_data.to_dict()
            else:
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
        from ..models.agents_product_component import AgentsProductComponent
        from ..models.beat_product_component import BeatProductComponent
        from ..models.broker_product_component import BrokerProductComponent
        from ..models.cluster_product_component import ClusterProductComponent
        from ..models.controller import Controller
        from ..models.database_product_component import DatabaseProductComponent
        from ..models.disk_product_component import DiskProductComponent
        from ..models.gateway_product_component import GatewayProductComponent
        from ..models.outbox_product_component import OutboxProductComponent
        from ..models.status_versions import StatusVersions
        from ..models.watcher_product_component import WatcherProductComponent
        from ..models.web_product_component import WebProductComponent
        from ..models.worker_product_component import WorkerProductComponent

        d = dict(src_dict)
        at = datetime.datetime.fromisoformat(d.pop("at"))

        condition = check_condition(d.pop("condition"))

        components = []
        _components = d.pop("components")
        for components_item_data in _components:

            def _parse_components_item(
                data: object,
            ) -> (
                AgentsProductComponent
                | BeatProductComponent
                | BrokerProductComponent
                | ClusterProductComponent
                | DatabaseProductComponent
                | DiskProductComponent
                | GatewayProductComponent
                | OutboxProductComponent
                | WatcherProductComponent
                | WebProductComponent
                | WorkerProductComponent
            ):
                try:
                    if not isinstance(data, dict):
                        raise TypeError()
                    componentsschemas_product_component_type_0 = WebProductComponent.from_dict(data)

                    return componentsschemas_product_component_type_0
                except (TypeError, ValueError, AttributeError, KeyError):
                    pass
                try:
                    if not isinstance(data, dict):
                        raise TypeError()
                    componentsschemas_product_component_type_1 = WorkerProductComponent.from_dict(
                        data
                    )

                    return componentsschemas_product_component_type_1
                except (TypeError, ValueError, AttributeError, KeyError):
                    pass
                try:
                    if not isinstance(data, dict):
                        raise TypeError()
                    componentsschemas_product_component_type_2 = BeatProductComponent.from_dict(
                        data
                    )

                    return componentsschemas_product_component_type_2
                except (TypeError, ValueError, AttributeError, KeyError):
                    pass
                try:
                    if not isinstance(data, dict):
                        raise TypeError()
                    componentsschemas_product_component_type_3 = DatabaseProductComponent.from_dict(
                        data
                    )

                    return componentsschemas_product_component_type_3
                except (TypeError, ValueError, AttributeError, KeyError):
                    pass
                try:
                    if not isinstance(data, dict):
                        raise TypeError()
                    componentsschemas_product_component_type_4 = BrokerProductComponent.from_dict(
                        data
                    )

                    return componentsschemas_product_component_type_4
                except (TypeError, ValueError, AttributeError, KeyError):
                    pass
                try:
                    if not isinstance(data, dict):
                        raise TypeError()
                    componentsschemas_product_component_type_5 = OutboxProductComponent.from_dict(
                        data
                    )

                    return componentsschemas_product_component_type_5
                except (TypeError, ValueError, AttributeError, KeyError):
                    pass
                try:
                    if not isinstance(data, dict):
                        raise TypeError()
                    componentsschemas_product_component_type_6 = GatewayProductComponent.from_dict(
                        data
                    )

                    return componentsschemas_product_component_type_6
                except (TypeError, ValueError, AttributeError, KeyError):
                    pass
                try:
                    if not isinstance(data, dict):
                        raise TypeError()
                    componentsschemas_product_component_type_7 = WatcherProductComponent.from_dict(
                        data
                    )

                    return componentsschemas_product_component_type_7
                except (TypeError, ValueError, AttributeError, KeyError):
                    pass
                try:
                    if not isinstance(data, dict):
                        raise TypeError()
                    componentsschemas_product_component_type_8 = ClusterProductComponent.from_dict(
                        data
                    )

                    return componentsschemas_product_component_type_8
                except (TypeError, ValueError, AttributeError, KeyError):
                    pass
                try:
                    if not isinstance(data, dict):
                        raise TypeError()
                    componentsschemas_product_component_type_9 = AgentsProductComponent.from_dict(
                        data
                    )

                    return componentsschemas_product_component_type_9
                except (TypeError, ValueError, AttributeError, KeyError):
                    pass
                if not isinstance(data, dict):
                    raise TypeError()
                componentsschemas_product_component_type_10 = DiskProductComponent.from_dict(data)

                return componentsschemas_product_component_type_10

            components_item = _parse_components_item(components_item_data)

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
