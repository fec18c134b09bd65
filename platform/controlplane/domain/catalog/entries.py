"""Catalog entries, their compatibility cells and facets, and matching of a model to its entry."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from controlplane.domain.architectures import Architecture


class CatalogTask(StrEnum):
    """What can be done with a model."""

    TRAIN = "train"
    SERVE = "serve"
    QUANTIZE = "quantize"


class SupportLevel(StrEnum):
    """What a source claims, strongest claim first."""

    #: Printed as supported.
    SUPPORTED = "supported"
    #: Printed as experimental, shown in a tutorial, or true of its architecture only.
    EXPERIMENTAL = "experimental"
    #: Only in an older release.
    LEGACY = "legacy"
    #: No source makes a claim.
    UNKNOWN = "unknown"
    #: Printed as unsupported.
    UNSUPPORTED = "unsupported"

    @property
    def rank(self) -> int:
        """0 is the strongest claim."""
        return list(SupportLevel).index(self)


class SupportCaveat(StrEnum):
    """What limits a claim."""

    #: The list names its architecture, not the model itself.
    ARCHITECTURE = "architecture"
    #: Listed without a mark that it was tested.
    UNTRIED = "untried"
    #: From a project's release news, not from its table.
    RELEASE_NOTES = "news"
    #: With one of the engine's back ends only.
    BACK_END = "back_end"
    #: From the type of its layers; not a result of this model.
    GENERIC = "generic"
    #: An older release loads the schemes; the quantizing tool is not stated.
    LOADED = "loaded"
    #: People say so; no source was read.
    HEARSAY = "hearsay"


class Modality(StrEnum):
    """Kind of input and output of a model."""

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


def strongest_support(claims: Iterable[SupportLevel]) -> SupportLevel:
    """The strongest of the claims; unknown if there are none."""
    return min(claims, key=lambda claim: claim.rank, default=SupportLevel.UNKNOWN)


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogSource:
    """Where claims were read."""

    key: str
    #: Document and revision.
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CompatibilityCell:
    """Support of one task by one engine on one vendor's chips."""

    task: CatalogTask
    vendor: str
    engine: str
    status: SupportLevel
    #: Versions of the engine that the evidence speaks of; empty where it does not say.
    versions: str = ""
    #: Methods of training, or schemes of quantizing.
    methods: tuple[str, ...] = ()
    #: Keys of sources. Empty only where nothing is claimed.
    evidence: tuple[str, ...] = ()
    caveat: SupportCaveat | None = None


def sort_cells(cells: Iterable[CompatibilityCell]) -> tuple[CompatibilityCell, ...]:
    """The cells in canonical order."""
    return tuple(sorted(cells, key=lambda cell: (cell.task, cell.vendor, cell.engine)))


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogEntry:
    """One published model. None and empty mean unknown."""

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
    #: Facts of a model of several parts. ``pipeline`` is the class in its ``model_index.json``, stated where
    #: the network in ``architecture`` is that of other pipelines too.
    components: Mapping[str, Any] = field(default_factory=dict)
    context_length: int | None = None
    context_extended: int | None = None
    kv_bytes_per_token: int | None = None
    licence: str = ""
    #: Of several repositories of a model, the one in the layout that engine plug-ins load.
    hf_repo: str = ""
    modelscope_id: str = ""
    prequantized: tuple[str, ...] = ()
    notes: str = ""
    cells: tuple[CompatibilityCell, ...] = ()

    def __hash__(self) -> int:
        return hash(self.key)

    def claims(
        self, task: CatalogTask, *, vendor: str = "", engines: frozenset[str] | None = None
    ) -> tuple[CompatibilityCell, ...]:
        """Its cells of that task, optionally of one vendor and of some engines only."""
        return tuple(
            cell
            for cell in self.cells
            if cell.task is task
            and vendor in ("", cell.vendor)
            and (engines is None or cell.engine in engines)
        )

    @property
    def digest(self) -> str:
        """SHA-256 of the whole entry, in hexadecimal."""
        text = json.dumps(asdict(self), sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()


_BILLION = 1_000_000_000


def architecture_facts(of: Any) -> dict[str, Any]:
    """The facts that ``controlplane.domain.architectures`` reads, by its field names, from an entry or its row."""
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


#: Relative difference between a rounded and the true number of parameters.
_PARAMETERS_TOLERANCE = 0.1


def match_entry(
    entries: Iterable[CatalogEntry], *, names: Sequence[str], built: Architecture | None
) -> CatalogEntry | None:
    """The entry of a model; None if none or more than one matches.

    Names decide first: a repository is what it says it is, even if a value differs, because that difference is
    what the comparison should show. Without a name, values that match exactly one entry decide; if they match
    several, none is returned, since instruct and base models of a family have the same architecture.

    ``names`` are repositories and folders that the model came from, the most reliable first; ``built`` is the
    architecture from its ``config.json``, if that could be parsed.
    """
    known = tuple(entries)
    for name in names:
        if (named := _match_repository_name(known, name)) is not None:
            return named
    fitting = [
        entry for entry in known if built is not None and _matches_architecture(entry, built)
    ]
    return fitting[0] if len(fitting) == 1 else None


def _match_repository_name(entries: Sequence[CatalogEntry], name: str) -> CatalogEntry | None:
    """By repository with its owner, else by the part after the owner if it is unambiguous."""
    wanted = name.strip().strip("/").lower()
    if not wanted:
        return None
    for entry in entries:
        if wanted in (entry.hf_repo.lower(), entry.modelscope_id.lower()):
            return entry
    if "/" in wanted and not wanted.startswith((".", "~")) and wanted.count("/") == 1:
        return None
    last = wanted.rpartition("/")[2]
    found = {
        entry.key: entry
        for entry in entries
        if last
        in (
            entry.key,
            *(repo.rpartition("/")[2].lower() for repo in (entry.hf_repo, entry.modelscope_id)),
        )
    }
    return next(iter(found.values())) if len(found) == 1 else None


def _matches_architecture(entry: CatalogEntry, built: Architecture) -> bool:
    """Whether every value is known and equal, and the parameters are close."""
    dimensions = (entry.layers, entry.hidden, entry.heads, entry.intermediate)
    if None in dimensions or entry.parameters is None or entry.architecture != built.name:
        return False
    own = (built.layers, built.hidden, built.heads, built.intermediate)
    close = abs(built.parameters - entry.parameters) <= _PARAMETERS_TOLERANCE * entry.parameters
    same_keys = entry.kv_heads in (None, built.kv_heads) or built.latent is not None
    return dimensions == own and same_keys and close


class CatalogFacet(StrEnum):
    """A dimension by which entries are filtered."""

    MODALITY = "modality"
    TRAIN = "train"
    SERVE = "serve"
    QUANTIZE = "quantize"
    SIZE = "size"
    TASK = "task"
    FAMILY = "family"
    LICENCE = "licence"


class SizeClass(StrEnum):
    """Parameters, in classes that need about the same number of cards."""

    SMALL = "under-1b"
    LIGHT = "1b-4b"
    MEDIUM = "4b-10b"
    LARGE = "10b-40b"
    HUGE = "40b-100b"
    GIANT = "over-100b"
    UNKNOWN = "unknown"


#: Upper bound of each class, itself excluded.
_SIZE_CLASS_BOUNDS: tuple[tuple[int, SizeClass], ...] = (
    (1 * _BILLION, SizeClass.SMALL),
    (4 * _BILLION, SizeClass.LIGHT),
    (10 * _BILLION, SizeClass.MEDIUM),
    (40 * _BILLION, SizeClass.LARGE),
    (100 * _BILLION, SizeClass.HUGE),
)
#: Facets of which an entry must have every chosen value.
VENDOR_FACETS = frozenset({CatalogFacet.TRAIN, CatalogFacet.SERVE, CatalogFacet.QUANTIZE})
_TASKS = {
    CatalogFacet.TRAIN: CatalogTask.TRAIN,
    CatalogFacet.SERVE: CatalogTask.SERVE,
    CatalogFacet.QUANTIZE: CatalogTask.QUANTIZE,
}
FacetSelection = Mapping[CatalogFacet, frozenset[str]]
#: Whether this installation renders what a cell claims of the entry.
Renders = Callable[[CatalogEntry, CompatibilityCell], bool]


def size_class(parameters: int | None) -> SizeClass:
    if parameters is None:
        return SizeClass.UNKNOWN
    return next((size for bound, size in _SIZE_CLASS_BOUNDS if parameters < bound), SizeClass.GIANT)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedEntry:
    """An entry with its facet values and searchable text."""

    entry: CatalogEntry
    values: Mapping[CatalogFacet, frozenset[str]]
    #: Lower case.
    text: str

    def fits(self, facet: CatalogFacet, chosen: frozenset[str]) -> bool:
        own = self.values[facet]
        return chosen <= own if facet in VENDOR_FACETS else not chosen.isdisjoint(own)


def index_entries(entries: Iterable[CatalogEntry], *, renders: Renders) -> tuple[IndexedEntry, ...]:
    """The entries, indexed for search. A vendor counts for a task if a source claims support and ``renders`` is
    true.
    """
    return tuple(
        IndexedEntry(
            entry=entry,
            values={facet: _facet_values(entry, facet, renders) for facet in CatalogFacet},
            text=" ".join(
                (
                    entry.key,
                    entry.title,
                    entry.family,
                    entry.architecture,
                    entry.hf_repo,
                    entry.modelscope_id,
                )
            ).lower(),
        )
        for entry in entries
    )


def _facet_values(entry: CatalogEntry, facet: CatalogFacet, renders: Renders) -> frozenset[str]:
    if facet in _TASKS:
        return frozenset(
            claim.vendor
            for claim in entry.claims(_TASKS[facet])
            if claim.status is SupportLevel.SUPPORTED and renders(entry, claim)
        )
    if facet is CatalogFacet.TASK:
        return frozenset(entry.tasks)
    single = {
        CatalogFacet.MODALITY: entry.modality.value,
        CatalogFacet.SIZE: size_class(entry.parameters).value,
        CatalogFacet.FAMILY: entry.family,
        CatalogFacet.LICENCE: entry.licence or "unknown",
    }
    return frozenset({single[facet]})


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogSearchResult:
    """Matching entries in the given order, and the count of each further facet value."""

    entries: tuple[CatalogEntry, ...]
    counts: Mapping[CatalogFacet, Mapping[str, int]] = field(default_factory=dict)


def search_entries(
    rows: Iterable[IndexedEntry], *, choice: FacetSelection, text: str = ""
) -> tuple[CatalogEntry, ...]:
    """The entries that contain every word of the text and match the selection of each facet."""
    chosen = _non_empty_facets(choice)
    return tuple(
        row.entry for row in _filter_text(rows, text) if not _unmatched_facets(row, chosen)
    )


def search_catalog_with_counts(
    rows: Iterable[IndexedEntry], *, choice: FacetSelection, text: str = ""
) -> CatalogSearchResult:
    """The same, with the count of each further facet value."""
    chosen = _non_empty_facets(choice)
    counts: dict[CatalogFacet, Counter[str]] = {facet: Counter() for facet in CatalogFacet}
    entries: list[CatalogEntry] = []
    for row in _filter_text(rows, text):
        missed = _unmatched_facets(row, chosen)
        if not missed:
            entries.append(row.entry)
            seen: Iterable[CatalogFacet] = CatalogFacet
        else:
            # A different selection of the one unmatched facet would include it.
            seen = missed - VENDOR_FACETS if len(missed) == 1 else ()
        for facet in seen:
            counts[facet].update(row.values[facet])
    return CatalogSearchResult(entries=tuple(entries), counts=counts)


def _non_empty_facets(choice: FacetSelection) -> FacetSelection:
    return {facet: values for facet, values in choice.items() if values}


def _filter_text(rows: Iterable[IndexedEntry], text: str) -> Iterable[IndexedEntry]:
    terms = text.lower().split()
    return (row for row in rows if all(word in row.text for word in terms))


def _unmatched_facets(row: IndexedEntry, chosen: FacetSelection) -> frozenset[CatalogFacet]:
    """Facets of which the row has no selected value."""
    return frozenset(facet for facet, values in chosen.items() if not row.fits(facet, values))
