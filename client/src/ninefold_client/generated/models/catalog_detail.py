from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.modality_enum import ModalityEnum, check_modality_enum

if TYPE_CHECKING:
    from ..models.catalog_cell import CatalogCell
    from ..models.catalog_detail_confidence import CatalogDetailConfidence
    from ..models.catalog_detail_mla_type_0 import CatalogDetailMlaType0
    from ..models.catalog_detail_moe_type_0 import CatalogDetailMoeType0
    from ..models.catalog_matrix import CatalogMatrix
    from ..models.catalog_source import CatalogSource
    from ..models.json_object import JsonObject
    from ..models.object_reference import ObjectReference


T = TypeVar("T", bound="CatalogDetail")


@_attrs_define
class CatalogDetail:
    """What is publicly known of one model."""

    key: str
    title: str
    family: str
    modality: ModalityEnum
    tasks: list[str]
    architecture: str
    dtype: str
    confidence: CatalogDetailConfidence
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
    mla: CatalogDetailMlaType0 | None
    moe: CatalogDetailMoeType0 | None
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
    withdrawn: bool
    matrix: list[CatalogMatrix]
    sources: list[CatalogSource]
    versions: list[ObjectReference]

    def to_dict(self) -> dict[str, Any]:
        from ..models.catalog_detail_mla_type_0 import CatalogDetailMlaType0
        from ..models.catalog_detail_moe_type_0 import CatalogDetailMoeType0

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
        if isinstance(self.mla, CatalogDetailMlaType0):
            mla = self.mla.to_dict()
        else:
            mla = self.mla

        moe: dict[str, Any] | None
        if isinstance(self.moe, CatalogDetailMoeType0):
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

        withdrawn = self.withdrawn

        matrix = []
        for matrix_item_data in self.matrix:
            matrix_item = matrix_item_data.to_dict()
            matrix.append(matrix_item)

        sources = []
        for sources_item_data in self.sources:
            sources_item = sources_item_data.to_dict()
            sources.append(sources_item)

        versions = []
        for versions_item_data in self.versions:
            versions_item = versions_item_data.to_dict()
            versions.append(versions_item)

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
                "withdrawn": withdrawn,
                "matrix": matrix,
                "sources": sources,
                "versions": versions,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.catalog_cell import CatalogCell
        from ..models.catalog_detail_confidence import CatalogDetailConfidence
        from ..models.catalog_detail_mla_type_0 import CatalogDetailMlaType0
        from ..models.catalog_detail_moe_type_0 import CatalogDetailMoeType0
        from ..models.catalog_matrix import CatalogMatrix
        from ..models.catalog_source import CatalogSource
        from ..models.json_object import JsonObject
        from ..models.object_reference import ObjectReference

        d = dict(src_dict)
        key = d.pop("key")

        title = d.pop("title")

        family = d.pop("family")

        modality = check_modality_enum(d.pop("modality"))

        tasks = cast(list[str], d.pop("tasks"))

        architecture = d.pop("architecture")

        dtype = d.pop("dtype")

        confidence = CatalogDetailConfidence.from_dict(d.pop("confidence"))

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

        def _parse_mla(data: object) -> CatalogDetailMlaType0 | None:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                mla_type_0 = CatalogDetailMlaType0.from_dict(data)

                return mla_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(CatalogDetailMlaType0 | None, data)

        mla = _parse_mla(d.pop("mla"))

        def _parse_moe(data: object) -> CatalogDetailMoeType0 | None:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                moe_type_0 = CatalogDetailMoeType0.from_dict(data)

                return moe_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(CatalogDetailMoeType0 | None, data)

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

        withdrawn = d.pop("withdrawn")

        matrix = []
        _matrix = d.pop("matrix")
        for matrix_item_data in _matrix:
            matrix_item = CatalogMatrix.from_dict(matrix_item_data)

            matrix.append(matrix_item)

        sources = []
        _sources = d.pop("sources")
        for sources_item_data in _sources:
            sources_item = CatalogSource.from_dict(sources_item_data)

            sources.append(sources_item)

        versions = []
        _versions = d.pop("versions")
        for versions_item_data in _versions:
            versions_item = ObjectReference.from_dict(versions_item_data)

            versions.append(versions_item)

        catalog_detail = cls(
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
            withdrawn=withdrawn,
            matrix=matrix,
            sources=sources,
            versions=versions,
        )

        return catalog_detail
