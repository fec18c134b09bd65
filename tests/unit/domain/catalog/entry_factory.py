"""Small entries for tests."""

from __future__ import annotations

from typing import Any

from controlplane.domain.catalog import (
    CatalogEntry,
    CatalogTask,
    CompatibilityCell,
    Modality,
    SupportLevel,
)


def cell(
    task: str = "serve", vendor: str = "nvidia", engine: str = "vllm", status: str = "supported"
) -> CompatibilityCell:
    evidence = () if status == "unknown" else ("S1",)
    return CompatibilityCell(
        task=CatalogTask(task),
        vendor=vendor,
        engine=engine,
        status=SupportLevel(status),
        evidence=evidence,
    )


def entry(key: str = "tiny-1b", **facts: Any) -> CatalogEntry:
    values: dict[str, Any] = {
        "title": key.title(),
        "family": "tiny",
        "modality": Modality.LLM,
        "tasks": ("chat",),
        "architecture": "Qwen2ForCausalLM",
        "dtype": "bfloat16",
        "confidence": {},
        "evidence": ("S1",),
    }
    return CatalogEntry(key=key, **(values | facts))
