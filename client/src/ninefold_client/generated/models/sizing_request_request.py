from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.json_object import JsonObject
    from ..models.sizing_request_request_spec import SizingRequestRequestSpec


T = TypeVar("T", bound="SizingRequestRequest")


@_attrs_define
class SizingRequestRequest:
    """One of ``model_version``, ``catalog`` and ``config`` says which model."""

    chip: str
    model_version: str | Unset = UNSET
    catalog: str | Unset = UNSET
    config: JsonObject | Unset = UNSET
    engine: str | Unset = ""
    spec: SizingRequestRequestSpec | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        chip = self.chip

        model_version = self.model_version

        catalog = self.catalog

        config: dict[str, Any] | Unset = UNSET
        if not isinstance(self.config, Unset):
            config = self.config.to_dict()

        engine = self.engine

        spec: dict[str, Any] | Unset = UNSET
        if not isinstance(self.spec, Unset):
            spec = self.spec.to_dict()

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "chip": chip,
            }
        )
        if model_version is not UNSET:
            field_dict["model_version"] = model_version
        if catalog is not UNSET:
            field_dict["catalog"] = catalog
        if config is not UNSET:
            field_dict["config"] = config
        if engine is not UNSET:
            field_dict["engine"] = engine
        if spec is not UNSET:
            field_dict["spec"] = spec

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.json_object import JsonObject
        from ..models.sizing_request_request_spec import SizingRequestRequestSpec

        d = dict(src_dict)
        chip = d.pop("chip")

        model_version = d.pop("model_version", UNSET)

        catalog = d.pop("catalog", UNSET)

        _config = d.pop("config", UNSET)
        config: JsonObject | Unset
        if isinstance(_config, Unset):
            config = UNSET
        else:
            config = JsonObject.from_dict(_config)

        engine = d.pop("engine", UNSET)

        _spec = d.pop("spec", UNSET)
        spec: SizingRequestRequestSpec | Unset
        if isinstance(_spec, Unset):
            spec = UNSET
        else:
            spec = SizingRequestRequestSpec.from_dict(_spec)

        sizing_request_request = cls(
            chip=chip,
            model_version=model_version,
            catalog=catalog,
            config=config,
            engine=engine,
            spec=spec,
        )

        return sizing_request_request
