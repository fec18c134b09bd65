"""The values of the catalog."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any


class CatalogTask(StrEnum):
    """What one might want to do with a model."""

    TRAIN = "train"
    SERVE = "serve"
    QUANTIZE = "quantize"


class Support(StrEnum):
    """What a source says, the strongest claim first."""

    #: Printed as supported.
    SUPPORTED = "supported"
    #: Printed as experimental, shown in a tutorial, or true of its architecture only.
    EXPERIMENTAL = "experimental"
    #: Only in an older release.
    LEGACY = "legacy"
    #: Nobody has said.
    UNKNOWN = "unknown"
    #: Printed as unsupported.
    UNSUPPORTED = "unsupported"

    @property
    def rank(self) -> int:
        """0 is the strongest claim."""
        return list(Support).index(self)


class Caveat(StrEnum):
    """What limits a claim."""

    #: The list names its architecture, not the model itself.
    ARCHITECTURE = "architecture"
    #: Listed without a mark that somebody tried it.
    UNTRIED = "untried"
    #: From a project's release news, not from its table.
    NEWS = "news"
    #: With one of the engine's back ends only.
    BACK_END = "back_end"
    #: From the type of its layers; not a result of this model.
    GENERIC = "generic"
    #: An older release loads the schemes; which tool made them is not said.
    LOADED = "loaded"
    #: People say so; no source was read.
    HEARSAY = "hearsay"


class Modality(StrEnum):
    """What goes in and comes out."""

    LLM = "llm"
    VLM = "vlm"
    EMBEDDING = "embedding"
    RERANK = "rerank"
    ASR = "asr"
    TTS = "tts"
    IMAGE = "image-gen"
    VIDEO = "video"
    RECOMMENDER = "recommender"


#: How sure a group of facts is.
CONFIDENCES = ("high", "medium", "low")
#: Groups of facts that a confidence is given for.
FACT_GROUPS = ("architecture", "ids", "license", "engines", "params_context_dtype")


def best(claims: Iterable[Support]) -> Support:
    """The strongest of the claims; unknown where there is none."""
    return min(claims, key=lambda claim: claim.rank, default=Support.UNKNOWN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where claims were read."""

    key: str
    #: Document and revision.
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One task by one engine on one vendor's chips."""

    task: CatalogTask
    vendor: str
    engine: str
    status: Support
    #: Versions of the engine that the evidence speaks of; empty where it does not say.
    versions: str = ""
    #: Methods of training, or schemes of quantizing.
    methods: tuple[str, ...] = ()
    #: Keys of sources. Empty only where nothing is claimed.
    evidence: tuple[str, ...] = ()
    caveat: Caveat | None = None


def in_order(cells: Iterable[Cell]) -> tuple[Cell, ...]:
    """The order in which an entry keeps its cells, whatever they came in."""
    return tuple(sorted(cells, key=lambda cell: (cell.task, cell.vendor, cell.engine)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One published model. None and empty mean: not known."""

    key: str
    title: str
    family: str
    modality: Modality
    tasks: tuple[str, ...]
    architecture: str
    dtype: str
    confidence: Mapping[str, str]
    evidence: tuple[str, ...]
    parameters: int | None = None
    active_parameters: int | None = None
    layers: int | None = None
    hidden: int | None = None
    heads: int | None = None
    kv_heads: int | None = None
    head_dim: int | None = None
    intermediate: int | None = None
    attention: str = ""
    mla: Mapping[str, int] | None = None
    moe: Mapping[str, int] | None = None
    components: Mapping[str, Any] = field(default_factory=dict)
    context_length: int | None = None
    context_extended: int | None = None
    kv_bytes_per_token: int | None = None
    licence: str = ""
    hf_repo: str = ""
    modelscope_id: str = ""
    prequantized: tuple[str, ...] = ()
    notes: str = ""
    cells: tuple[Cell, ...] = ()

    def claims(
        self, task: CatalogTask, *, vendor: str = "", engines: frozenset[str] | None = None
    ) -> tuple[Cell, ...]:
        """Its cells of that task, of one vendor and of some engines only where they are named."""
        return tuple(
            cell
            for cell in self.cells
            if cell.task is task
            and vendor in ("", cell.vendor)
            and (engines is None or cell.engine in engines)
        )

    @property
    def digest(self) -> str:
        """SHA-256 over everything that it says, in hexadecimal."""
        text = json.dumps(asdict(self), sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()


_BILLION = 1e9


def architecture_facts(of: Any) -> dict[str, Any]:
    """What ``controlplane.domain.architectures`` reads of an entry or its row, by the names it uses."""
    return {
        "id": of.key,
        "architecture": of.architecture,
        "params_b": of.parameters / _BILLION if of.parameters else None,
        "active_params_b": of.active_parameters / _BILLION if of.active_parameters else None,
        "layers": of.layers,
        "hidden_size": of.hidden,
        "attention_heads": of.heads,
        "kv_heads": of.kv_heads,
        "head_dim": of.head_dim,
        "intermediate_size": of.intermediate,
        "attention": of.attention or None,
        "mla": of.mla,
        "moe": of.moe,
        "context_length": of.context_length,
        "dtype": of.dtype,
    }
