from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.adapter_request_request import AdapterRequestRequest
    from ..models.serve_spec_request import ServeSpecRequest


T = TypeVar("T", bound="RevisionRequestRequest")


@_attrs_define
class RevisionRequestRequest:
    """What a revision serves, and how."""

    model_version: str
    engine: str | Unset = UNSET
    spec: ServeSpecRequest | Unset = UNSET
    chips: list[str] | Unset = UNSET
    cards: int | Unset = UNSET
    adapters: list[AdapterRequestRequest] | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        model_version = self.model_version

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

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "model_version": model_version,
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

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.adapter_request_request import AdapterRequestRequest
        from ..models.serve_spec_request import ServeSpecRequest

        d = dict(src_dict)
        model_version = d.pop("model_version")

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

        revision_request_request = cls(
            model_version=model_version,
            engine=engine,
            spec=spec,
            chips=chips,
            cards=cards,
            adapters=adapters,
        )

        return revision_request_request
