"""Small entries for tests."""

from __future__ import annotations

from typing import Any

from controlplane.domain.catalog import CatalogTask, Cell, Entry, Modality, Support


def cell(
    task: str = "serve", vendor: str = "nvidia", engine: str = "vllm", status: str = "supported"
) -> Cell:
    evidence = () if status == "unknown" else ("S1",)
    return Cell(
        task=CatalogTask(task),
        vendor=vendor,
        engine=engine,
        status=Support(status),
        evidence=evidence,
    )


def entry(key: str = "tiny-1b", **facts: Any) -> Entry:
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
    return Entry(key=key, **(values | facts))
