from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.modality_enum import ModalityEnum, check_modality_enum

if TYPE_CHECKING:
    from ..models.catalog_cell import CatalogCell
    from ..models.catalog_entry_confidence import CatalogEntryConfidence
    from ..models.catalog_entry_mla_type_0 import CatalogEntryMlaType0
    from ..models.catalog_entry_moe_type_0 import CatalogEntryMoeType0
    from ..models.json_object import JsonObject


T = TypeVar("T", bound="CatalogEntry")


@_attrs_define
class CatalogEntry:
    """What is publicly known of one model."""

    key: str
    title: str
    family: str
    modality: ModalityEnum
    tasks: list[str]
    architecture: str
    dtype: str
    confidence: CatalogEntryConfidence
    evidence: list[str]
    parameters: int | None
    active_parameters: int | None
    layers: int | None
    hidden: int | None
    heads: int | None
    kv_heads: int | None
    head_dim: int | None
    intermediate: int | None
    attention: str
    mla: CatalogEntryMlaType0 | None
    moe: CatalogEntryMoeType0 | None
    components: JsonObject
    context_length: int | None
    context_extended: int | None
    kv_bytes_per_token: int | None
    licence: str
    hf_repo: str
    modelscope_id: str
    prequantized: list[str]
    notes: str
    cells: list[CatalogCell]

    def to_dict(self) -> dict[str, Any]:
        from ..models.catalog_entry_mla_type_0 import CatalogEntryMlaType0
        from ..models.catalog_entry_moe_type_0 import CatalogEntryMoeType0

        key = self.key

        title = self.title

        family = self.family

        modality: str = self.modality

        tasks = self.tasks

        architecture = self.architecture

        dtype = self.dtype

        confidence = self.confidence.to_dict()

        evidence = self.evidence

        parameters: int | None
        parameters = self.parameters

        active_parameters: int | None
        active_parameters = self.active_parameters

        layers: int | None
        layers = self.layers

        hidden: int | None
        hidden = self.hidden

        heads: int | None
        heads = self.heads

        kv_heads: int | None
        kv_heads = self.kv_heads

        head_dim: int | None
        head_dim = self.head_dim

        intermediate: int | None
        intermediate = self.intermediate

        attention = self.attention

        mla: dict[str, Any] | None
        if isinstance(self.mla, CatalogEntryMlaType0):
            mla = self.mla.to_dict()
        else:
            mla = self.mla

        moe: dict[str, Any] | None
        if isinstance(self.moe, CatalogEntryMoeType0):
            moe = self.moe.to_dict()
        else:
            moe = self.moe

        components = self.components.to_dict()

        context_length: int | None
        context_length = self.context_length

        context_extended: int | None
        context_extended = self.context_extended

        kv_bytes_per_token: int | None
        kv_bytes_per_token = self.kv_bytes_per_token

        licence = self.licence

        hf_repo = self.hf_repo

        modelscope_id = self.modelscope_id

        prequantized = self.prequantized

        notes = self.notes

        cells = []
        for cells_item_data in self.cells:
            cells_item = cells_item_data.to_dict()
            cells.append(cells_item)

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "key": key,
                "title": title,
                "family": family,
                "modality": modality,
                "tasks": tasks,
                "architecture": architecture,
                "dtype": dtype,
                "confidence": confidence,
                "evidence": evidence,
                "parameters": parameters,
                "active_parameters": active_parameters,
                "layers": layers,
                "hidden": hidden,
                "heads": heads,
                "kv_heads": kv_heads,
                "head_dim": head_dim,
                "intermediate": intermediate,
                "attention": attention,
                "mla": mla,
                "moe": moe,
                "components": components,
                "context_length": context_length,
                "context_extended": context_extended,
                "kv_bytes_per_token": kv_bytes_per_token,
                "licence": licence,
                "hf_repo": hf_repo,
                "modelscope_id": modelscope_id,
                "prequantized": prequantized,
                "notes": notes,
                "cells": cells,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.catalog_cell import CatalogCell
        from ..models.catalog_entry_confidence import CatalogEntryConfidence
        from ..models.catalog_entry_mla_type_0 import CatalogEntryMlaType0
        from ..models.catalog_entry_moe_type_0 import CatalogEntryMoeType0
        from ..models.json_object import JsonObject

        d = dict(src_dict)
        key = d.pop("key")

        title = d.pop("title")

        family = d.pop("family")

        modality = check_modality_enum(d.pop("modality"))

        tasks = cast(list[str], d.pop("tasks"))

        architecture = d.pop("architecture")

        dtype = d.pop("dtype")

        confidence = CatalogEntryConfidence.from_dict(d.pop("confidence"))

        evidence = cast(list[str], d.pop("evidence"))

        def _parse_parameters(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        parameters = _parse_parameters(d.pop("parameters"))

        def _parse_active_parameters(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        active_parameters = _parse_active_parameters(d.pop("active_parameters"))

        def _parse_layers(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        layers = _parse_layers(d.pop("layers"))

        def _parse_hidden(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        hidden = _parse_hidden(d.pop("hidden"))

        def _parse_heads(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        heads = _parse_heads(d.pop("heads"))

        def _parse_kv_heads(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        kv_heads = _parse_kv_heads(d.pop("kv_heads"))

        def _parse_head_dim(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        head_dim = _parse_head_dim(d.pop("head_dim"))

        def _parse_intermediate(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        intermediate = _parse_intermediate(d.pop("intermediate"))

        attention = d.pop("attention")

        def _parse_mla(data: object) -> CatalogEntryMlaType0 | None:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                mla_type_0 = CatalogEntryMlaType0.from_dict(data)

                return mla_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(CatalogEntryMlaType0 | None, data)

        mla = _parse_mla(d.pop("mla"))

        def _parse_moe(data: object) -> CatalogEntryMoeType0 | None:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                moe_type_0 = CatalogEntryMoeType0.from_dict(data)

                return moe_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(CatalogEntryMoeType0 | None, data)

        moe = _parse_moe(d.pop("moe"))

        components = JsonObject.from_dict(d.pop("components"))

        def _parse_context_length(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        context_length = _parse_context_length(d.pop("context_length"))

        def _parse_context_extended(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        context_extended = _parse_context_extended(d.pop("context_extended"))

        def _parse_kv_bytes_per_token(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        kv_bytes_per_token = _parse_kv_bytes_per_token(d.pop("kv_bytes_per_token"))

        licence = d.pop("licence")

        hf_repo = d.pop("hf_repo")

        modelscope_id = d.pop("modelscope_id")

        prequantized = cast(list[str], d.pop("prequantized"))

        notes = d.pop("notes")

        cells = []
        _cells = d.pop("cells")
        for cells_item_data in _cells:
            cells_item = CatalogCell.from_dict(cells_item_data)

            cells.append(cells_item)

        catalog_entry = cls(
            key=key,
            title=title,
            family=family,
            modality=modality,
            tasks=tasks,
            architecture=architecture,
            dtype=dtype,
            confidence=confidence,
            evidence=evidence,
            parameters=parameters,
            active_parameters=active_parameters,
            layers=layers,
            hidden=hidden,
            heads=heads,
            kv_heads=kv_heads,
            head_dim=head_dim,
            intermediate=intermediate,
            attention=attention,
            mla=mla,
            moe=moe,
            components=components,
            context_length=context_length,
            context_extended=context_extended,
            kv_bytes_per_token=kv_bytes_per_token,
            licence=licence,
            hf_repo=hf_repo,
            modelscope_id=modelscope_id,
            prequantized=prequantized,
            notes=notes,
            cells=cells,
        )

        return catalog_entry
