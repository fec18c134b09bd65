"""The kind of a model, recognised by the files of its folder.

============================================== ======================================================
``model_index.json``                           image (diffusers)
``config.json``, first of ``architectures``
…``ForSequenceClassification``, one label      reranking
``modules.json`` with ``LogitScore``           reranking (scores two tokens of a causal model)
…``ForCausalLM``                               text
``Whisper…ForConditionalGeneration``           transcription
…``ForConditionalGeneration`` with images      text
``modules.json``, or …``Model``                embedding (sentence-transformers)
============================================== ======================================================

``modules.json`` decides between a causal language model and an embedding model or reranker made of it.
"""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Any

from ninefold_runtime.exit_codes import InvalidTaskInput


class ServedKind(StrEnum):
    """What a model is served for."""

    TEXT = "text"
    EMBEDDING = "embedding"
    RERANKER = "reranker"
    TRANSCRIPTION = "transcription"
    IMAGE = "image"


_SERVED = (
    "causal and vision-language models, Whisper, sequence classifiers with one label, encoders and "
    "sentence-transformers, and text-to-image pipelines of diffusers"
)


def model_kind(folder: Path) -> ServedKind:
    """What the model is served for.

    :raises InvalidTaskInput: if this server has no operation for it, or its files cannot be read.
    """
    if not any(folder.rglob("*.safetensors")):
        raise InvalidTaskInput("the model has no *.safetensors file; other formats are not loaded")
    if (folder / "model_index.json").is_file():
        return ServedKind.IMAGE
    is_pipeline = (folder / "modules.json").is_file()
    if is_pipeline and any(name.endswith(".LogitScore") for name in _module_types(folder)):
        return ServedKind.RERANKER
    if not (folder / "config.json").is_file():
        if is_pipeline:
            return ServedKind.EMBEDDING
        raise InvalidTaskInput("the model has no config.json")
    return _kind_of_config(_read_json(folder / "config.json"), is_pipeline=is_pipeline)


def is_vision_language(folder: Path) -> bool:
    """Whether a model for text reads images too."""
    architecture = _architecture(_read_json(folder / "config.json"))
    return architecture.endswith("ForConditionalGeneration")


def _kind_of_config(config: dict[str, Any], *, is_pipeline: bool) -> ServedKind:
    architecture = _architecture(config)
    if architecture.endswith("ForSequenceClassification"):
        labels = config.get("num_labels") or len(config.get("id2label") or (0, 1))
        if labels == 1:
            return ServedKind.RERANKER
        raise InvalidTaskInput(
            f"{architecture} with {labels} labels is not served; a reranker has 1 label"
        )
    if is_pipeline:
        return ServedKind.EMBEDDING
    if architecture.endswith("ForCausalLM"):
        return ServedKind.TEXT
    if architecture.endswith("ForConditionalGeneration"):
        if architecture.startswith("Whisper"):
            return ServedKind.TRANSCRIPTION
        if "vision_config" in config:
            return ServedKind.TEXT
    if architecture.endswith("Model"):
        return ServedKind.EMBEDDING
    raise InvalidTaskInput(
        f"{architecture or 'a model without architectures in its config.json'} is not served; "
        f"this server has {_SERVED}"
    )


def _architecture(config: dict[str, Any]) -> str:
    architectures = config.get("architectures")
    return str(architectures[0]) if isinstance(architectures, list) and architectures else ""


def _module_types(folder: Path) -> list[str]:
    """The classes of the pipeline's modules.

    :raises InvalidTaskInput: if one is not of sentence-transformers.
    """
    settings = folder / "config_sentence_transformers.json"
    kind = _read_json(settings).get("model_type") if settings.is_file() else None
    if kind not in (None, "SentenceTransformer", "CrossEncoder"):
        raise InvalidTaskInput(f"a {kind} of sentence-transformers is not served")
    types = []
    for module in _read_json(folder / "modules.json", kind=list):
        name = module.get("type") if isinstance(module, dict) else None
        if not isinstance(name, str) or not name.startswith("sentence_transformers."):
            raise InvalidTaskInput(
                f"modules.json names {name!r}; only modules of sentence_transformers are loaded"
            )
        types.append(name)
    return types


def _read_json(path: Path, *, kind: type = dict) -> Any:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidTaskInput(f"{path.name} cannot be read: {error}") from error
    if not isinstance(content, kind):
        raise InvalidTaskInput(f"{path.name} must contain a JSON {kind.__name__}")
    return content
