from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.adapter_request_request import AdapterRequestRequest
    from ..models.serve_spec_request import ServeSpecRequest


T = TypeVar("T", bound="DeploymentCreateRequest")


@_attrs_define
class DeploymentCreateRequest:
    """What a revision serves, and how."""

    model_version: str
    name: str
    engine: str | Unset = UNSET
    spec: ServeSpecRequest | Unset = UNSET
    chips: list[str] | Unset = UNSET
    cards: int | Unset = UNSET
    adapters: list[AdapterRequestRequest] | Unset = UNSET
    max_surge: int | str | Unset = UNSET
    max_unavailable: int | str | Unset = UNSET
    team: str | Unset = UNSET
    queue: str | Unset = "default"
    replicas: int | Unset = 1

    def to_dict(self) -> dict[str, Any]:
        model_version = self.model_version

        name = self.name

        engine = self.engine

        spec: dict[str, Any] | Unset = UNSET
        if not isinstance(self.spec, Unset):
            spec = self.spec.to_dict()

        chips: list[str] | Unset = UNSET
        if not isinstance(self.chips, Unset):
            chips = self.chips

        cards = self.cards

        adapters: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.adapters, Unset):
            adapters = []
            for adapters_item_data in self.adapters:
                adapters_item = adapters_item_data.to_dict()
                adapters.append(adapters_item)

        max_surge: int | str | Unset
        if isinstance(self.max_surge, Unset):
            max_surge = UNSET
        else:
            max_surge = self.max_surge

        max_unavailable: int | str | Unset
        if isinstance(self.max_unavailable, Unset):
            max_unavailable = UNSET
        else:
            max_unavailable = self.max_unavailable

        team = self.team

        queue = self.queue

        replicas = self.replicas

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "model_version": model_version,
                "name": name,
            }
        )
        if engine is not UNSET:
            field_dict["engine"] = engine
        if spec is not UNSET:
            field_dict["spec"] = spec
        if chips is not UNSET:
            field_dict["chips"] = chips
        if cards is not UNSET:
            field_dict["cards"] = cards
        if adapters is not UNSET:
            field_dict["adapters"] = adapters
        if max_surge is not UNSET:
            field_dict["max_surge"] = max_surge
        if max_unavailable is not UNSET:
            field_dict["max_unavailable"] = max_unavailable
        if team is not UNSET:
            field_dict["team"] = team
        if queue is not UNSET:
            field_dict["queue"] = queue
        if replicas is not UNSET:
            field_dict["replicas"] = replicas

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.adapter_request_request import AdapterRequestRequest
        from ..models.serve_spec_request import ServeSpecRequest

        d = dict(src_dict)
        model_version = d.pop("model_version")

        name = d.pop("name")

        engine = d.pop("engine", UNSET)

        _spec = d.pop("spec", UNSET)
        spec: ServeSpecRequest | Unset
        if isinstance(_spec, Unset):
            spec = UNSET
        else:
            spec = ServeSpecRequest.from_dict(_spec)

        chips = cast(list[str], d.pop("chips", UNSET))

        cards = d.pop("cards", UNSET)

        _adapters = d.pop("adapters", UNSET)
        adapters: list[AdapterRequestRequest] | Unset = UNSET
        if _adapters is not UNSET:
            adapters = []
            for adapters_item_data in _adapters:
                adapters_item = AdapterRequestRequest.from_dict(adapters_item_data)

                adapters.append(adapters_item)

        def _parse_max_surge(data: object) -> int | str | Unset:
            if isinstance(data, Unset):
                return data
            return cast(int | str | Unset, data)

        max_surge = _parse_max_surge(d.pop("max_surge", UNSET))

        def _parse_max_unavailable(data: object) -> int | str | Unset:
            if isinstance(data, Unset):
                return data
            return cast(int | str | Unset, data)

        max_unavailable = _parse_max_unavailable(d.pop("max_unavailable", UNSET))

        team = d.pop("team", UNSET)

        queue = d.pop("queue", UNSET)

        replicas = d.pop("replicas", UNSET)

        deployment_create_request = cls(
            model_version=model_version,
            name=name,
            engine=engine,
            spec=spec,
            chips=chips,
            cards=cards,
            adapters=adapters,
            max_surge=max_surge,
            max_unavailable=max_unavailable,
            team=team,
            queue=queue,
            replicas=replicas,
        )

        return deployment_create_request
