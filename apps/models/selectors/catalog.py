"""The model catalog as last loaded, its compatibility matrix, and what installed engines render of it.

The catalog is small and changes only by a load, so each process caches it. Each query first reads one digest of
all entries from the database and reloads the rows only if the digest has changed.

The compatibility matrix of an entry lists tasks by vendor and engine, with the evidence of each claim. Vendors
come from the installed chip plug-ins, engines from the evidence and from the installed plug-ins that run on the
vendor's chips. Each claim states two separate things: what a source says of this model, and whether this
installation renders it. That a source lists a model as supported by an engine does not mean that Ninefold can
start it: ``is_rendered`` asks the engine plug-in's own ``check`` with the facts that the catalog has of the model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from importlib import resources
from typing import Any

from django.contrib.postgres.aggregates import StringAgg
from django.db.models import CharField, F, Value
from django.db.models.functions import MD5, Cast, Coalesce, Concat

from apps.models.models import CatalogCell, CatalogModel, ModelVersion
from controlplane.domain.architectures import (
    ConfigRefused,
    Contradiction,
    find_contradictions,
    parse_architecture,
)
from controlplane.domain.catalog import (
    CatalogEntry,
    CatalogSource,
    CatalogTask,
    CompatibilityCell,
    Modality,
    SupportCaveat,
    SupportLevel,
    strongest_support,
)
from controlplane.domain.catalog.entries import (
    CatalogFacet,
    CatalogSearchResult,
    FacetSelection,
    IndexedEntry,
    architecture_facts,
    index_entries,
    search_catalog_with_counts,
    search_entries,
    sort_cells,
)
from controlplane.domain.catalog.parsing import Catalog, read_catalog
from controlplane.domain.common.accelerators import Chip, ChipKind
from controlplane.domain.common.reasons import Reason
from controlplane.domain.serving.model_kinds import KIND_MARKERS, ModelKind
from controlplane.ports import adapter_registry
from controlplane.ports.chips import ChipPlugin
from controlplane.ports.engines import Engine, EngineProfile, EngineTask, ModelFacts

#: Fields of an entry that are columns of its row with the same name.
COLUMNS = tuple(field.name for field in fields(CatalogEntry) if field.name != "cells")
_LISTS = frozenset({"tasks", "evidence", "prequantized"})


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogSnapshot:
    """Every entry that is not withdrawn, by key, and the digest of this content."""

    revision: str
    entries: Mapping[str, CatalogEntry]


def catalog_snapshot() -> CatalogSnapshot:
    """The current catalog; one query, two more after a load."""
    found = CatalogModel.objects.aggregate(
        revision=MD5(
            StringAgg(
                Concat("key", "digest", Coalesce(Cast("withdrawn_at", CharField()), Value(""))),
                delimiter=",",
                order_by=F("key"),
                default=Value(""),
            )
        )
    )
    return catalog_snapshot_at(found["revision"])


@lru_cache(maxsize=2)
def catalog_snapshot_at(revision: str) -> CatalogSnapshot:
    """The catalog of that revision, which must be the current one or a recently cached one."""
    rows = CatalogModel.objects.filter(withdrawn_at=None).prefetch_related("cells")
    return CatalogSnapshot(
        revision=revision, entries={row.key: catalog_entry_from_row(row) for row in rows}
    )


def catalog_entry_from_row(row: CatalogModel) -> CatalogEntry:
    """The catalog entry stored in a row, including its cells."""
    facts: dict[str, Any] = {
        name: tuple(value) if name in _LISTS else value
        for name in COLUMNS
        for value in (getattr(row, name),)
    }
    facts["modality"] = Modality(row.modality)
    return CatalogEntry(**facts, cells=sort_cells(_cell_from_row(cell) for cell in row.cells.all()))


def _cell_from_row(cell: CatalogCell) -> CompatibilityCell:
    return CompatibilityCell(
        task=CatalogTask(cell.task),
        vendor=cell.vendor,
        engine=cell.engine,
        status=SupportLevel(cell.status),
        versions=cell.versions,
        methods=tuple(cell.methods),
        evidence=tuple(cell.evidence),
        caveat=SupportCaveat(cell.caveat) if cell.caveat else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogIndex:
    """The catalog of one revision, indexed for search."""

    revision: str
    #: Engines with an installed plug-in.
    engines: frozenset[str]
    #: By title.
    rows: tuple[IndexedEntry, ...]
    #: All values of each facet.
    values: Mapping[CatalogFacet, frozenset[str]]

    def search(self, *, choice: FacetSelection, text: str = "") -> CatalogSearchResult:
        """Matching entries, with the count of each further facet value."""
        return search_catalog_with_counts(self.rows, choice=choice, text=text)

    def fitting(self, *, choice: FacetSelection, text: str = "") -> tuple[CatalogEntry, ...]:
        """Matching entries only."""
        return search_entries(self.rows, choice=choice, text=text)


def catalog_index() -> CatalogIndex:
    """The index of the current catalog; one query, two more after a load."""
    return catalog_index_at(catalog_snapshot().revision, installed_engines())


@lru_cache(maxsize=4)
def catalog_index_at(revision: str, engines: frozenset[str]) -> CatalogIndex:
    """The index of a recently cached revision, for the given installed engines."""
    entries = sorted(
        catalog_snapshot_at(revision).entries.values(), key=lambda entry: entry.title.lower()
    )
    rows = index_entries(
        entries,
        renders=lambda entry, cell: is_task_rendered(
            entry, task=cell.task, vendor=cell.vendor, engine=cell.engine
        ),
    )
    values = {
        facet: frozenset().union(*(row.values[facet] for row in rows)) for facet in CatalogFacet
    }
    return CatalogIndex(revision=revision, engines=engines, rows=rows, values=values)


def catalog_entry(key: str) -> tuple[CatalogEntry, bool] | None:
    """The entry with that key and whether it is withdrawn; None if there never was one."""
    if (entry := catalog_snapshot().entries.get(key)) is not None:
        return entry, False
    row = CatalogModel.objects.filter(key=key).prefetch_related("cells").first()
    return None if row is None else (catalog_entry_from_row(row), row.withdrawn_at is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogDifferences:
    """Differences between a version's ``config.json`` and its catalog entry."""

    contradictions: tuple[Contradiction, ...] = ()
    #: Why it could not be compared, one message each.
    problems: tuple[str, ...] = ()


def catalog_differences(version: ModelVersion, *, entry: CatalogEntry) -> CatalogDifferences:
    """Every field in which the version's own configuration and the entry differ."""
    if version.config is None:
        return CatalogDifferences()
    # Quantized weights are packed, so their element count is not the number of parameters.
    counted = None if version.scheme else version.parameters or None
    try:
        built = parse_architecture(version.config, parameters=counted)
    except ConfigRefused as refusal:
        return CatalogDifferences(problems=tuple(finding.message for finding in refusal.findings))
    return CatalogDifferences(contradictions=find_contradictions(built, architecture_facts(entry)))


@lru_cache(maxsize=1)
def published_catalog() -> Catalog:
    """The catalog that this release ships, read from its data files.

    :raises CatalogRefused: if they are invalid.
    """
    folder = resources.files("controlplane") / "catalog"
    files = {
        file.name: file.read_text(encoding="utf-8")
        for file in folder.iterdir()
        if file.name.endswith(".toml")
    }
    return read_catalog(files)


@lru_cache(maxsize=64)
def supported_model_counts(*, task: CatalogTask, vendor: str) -> Mapping[str, int]:
    """Engine → number of models for which a source claims the task on the vendor's chips."""
    claims = (
        cell
        for entry in published_catalog().entries.values()
        for cell in entry.claims(task, vendor=vendor)
        if cell.status in (SupportLevel.SUPPORTED, SupportLevel.EXPERIMENTAL)
    )
    return Counter(cell.engine for cell in claims)


def catalog_sources() -> Mapping[str, CatalogSource]:
    """The sources, by the keys that evidence lists refer to."""
    return published_catalog().sources


def engine_titles() -> Mapping[str, str]:
    """Display names of the engines that the evidence names."""
    return published_catalog().engines


TASKS: Mapping[CatalogTask, EngineTask] = {
    CatalogTask.TRAIN: EngineTask.FINETUNE,
    CatalogTask.SERVE: EngineTask.SERVE,
    CatalogTask.QUANTIZE: EngineTask.QUANTIZE,
}
#: Modalities that engines serve, and as which kind of model. Training and quantization are for text only.
_MODEL_KINDS: Mapping[Modality, ModelKind] = {
    Modality.LLM: ModelKind.TEXT,
    Modality.VLM: ModelKind.TEXT,
    Modality.EMBEDDING: ModelKind.EMBEDDING,
    Modality.RERANK: ModelKind.RERANKER,
    Modality.ASR: ModelKind.TRANSCRIPTION,
    Modality.TTS: ModelKind.SPEECH,
    Modality.IMAGE: ModelKind.IMAGE,
    Modality.VIDEO: ModelKind.VIDEO,
}
#: The field whose every choice is tried before a task counts as not rendered.
_ALTERNATIVE_FIELDS: Mapping[EngineTask, str] = {
    EngineTask.FINETUNE: "method",
    EngineTask.QUANTIZE: "scheme",
}
#: Values for required fields without a default that do not depend on the model.
_REQUIRED_VALUES: Mapping[EngineTask, Mapping[str, Any]] = {EngineTask.FINETUNE: {"max_steps": 100}}
#: Present in every ``config.json`` of a language model but not in the catalog; some engines require it.
_NOT_IN_CATALOG: Mapping[str, Any] = {
    "vocab_size": 32_000,
    "rms_norm_eps": 1e-6,
    "rope_theta": 10_000.0,
}
#: The same of a vision-language model, by which the server of ``transformers`` recognises that it reads images.
_NOT_IN_CATALOG_OF_VLM: Mapping[str, Any] = {"vision_config": {}}


def installed_engines() -> frozenset[str]:
    """Names of the engine plug-ins of this installation."""
    return frozenset(adapter_registry.engine_names())


def is_task_rendered(entry: CatalogEntry, *, task: CatalogTask, vendor: str, engine: str) -> bool:
    """Whether an installed engine renders the task for the model on some chip of the vendor."""
    return not task_rendering_refusal(entry, task=task, vendor=vendor, engine=engine)


def task_rendering_refusal(
    entry: CatalogEntry, *, task: CatalogTask, vendor: str, engine: str
) -> str:
    """Why the engine does not render the task, by its check on the first chip that it runs on; or empty."""
    return _rendering_refusal(entry, task, vendor, engine, installed_engines())


# A page of the catalog asks for a thousand of them, each of which checks some specs on every chip of a vendor.
@lru_cache(maxsize=8_192)
def _rendering_refusal(
    entry: CatalogEntry, task: CatalogTask, vendor: str, engine: str, installed: frozenset[str]
) -> str:
    if engine not in installed:
        return Reason("engine.plugin.not_installed", "no plug-in for this engine is installed")
    if (plugin := adapter_registry.chip_plugins().get(vendor)) is None:
        return Reason(
            "chip.plugin.not_installed", "no plug-in for chips of this vendor is installed"
        )
    plug_in, asked = adapter_registry.engine_by_name(engine), TASKS[task]
    if asked not in plug_in.tasks:
        return Reason(
            "engine.plugin.task_not_supported",
            "the plug-in of this engine does not support the task {task}",
            task=asked,
        )
    if refusal := _kind_refusal(entry, asked) or _source_refusal(entry, task, vendor, engine):
        return refusal
    chips = plugin.chips()
    running = [chip for chip in chips if not plug_in.unsupported_reason(asked, chip)]
    if not running:
        return (
            plug_in.unsupported_reason(asked, chips[0])
            if chips
            else Reason("chip.vendor.no_chips", "no chip of this vendor is known")
        )
    return _refusal_unless_any_accepted(
        _refusal_on_chip(chip, entry, task=asked, engine=plug_in) for chip in running
    )


def _source_refusal(entry: CatalogEntry, task: CatalogTask, vendor: str, engine: str) -> str:
    """That a source names the model as not supported by the engine on the vendor's chips; or empty."""
    claims = entry.claims(task, vendor=vendor)
    if any(c.engine == engine and c.status is SupportLevel.UNSUPPORTED for c in claims):
        return Reason(
            "catalog.model.unsupported_by_source",
            "the documentation of the engine names this model as not supported",
        )
    return ""


def _kind_refusal(entry: CatalogEntry, task: EngineTask) -> str:
    """Why no engine is asked about a model of this kind; or empty."""
    kind = _MODEL_KINDS.get(entry.modality)
    if task is not EngineTask.SERVE:
        if kind is ModelKind.TEXT:
            return ""
        return Reason(
            "engine.modality.not_supported", "only models that generate text are supported"
        )
    if kind is None:
        return Reason(
            "engine.modality.not_served",
            "models of the kind {modality} are not served; the kinds are {kinds}",
            modality=entry.modality,
            kinds=", ".join(sorted(set(_MODEL_KINDS.values()))),
        )
    if catalog_model_facts(entry).kind is not kind:
        return Reason(
            "engine.modality.architecture_not_served",
            "a {kind} model of the architecture {architecture} is not served",
            kind=kind,
            architecture=entry.architecture,
        )
    return ""


def _refusal_on_chip(chip: Chip, entry: CatalogEntry, *, task: EngineTask, engine: Engine) -> str:
    """The first finding for the default spec; empty if any minimal spec has no findings."""
    model = catalog_model_facts(entry)
    checks = (
        engine.check(task, spec, chip=chip, model=model) for spec in _minimal_specs(engine, task)
    )
    return _refusal_unless_any_accepted(found[0].message if found else "" for found in checks)


def _refusal_unless_any_accepted(refusals: Iterable[str]) -> str:
    """The first of them; empty if any is empty, and those after an empty one are not computed."""
    first = ""
    for refusal in refusals:
        if not refusal:
            return ""
        first = first or refusal
    return first


def _minimal_specs(engine: Engine, task: EngineTask) -> Iterator[dict[str, Any]]:
    """The minimal spec with defaults first, then one for each alternative method or scheme."""
    values = dict(_REQUIRED_VALUES.get(task, {}))
    yield values
    for field in engine.fields(task):
        if field.name == _ALTERNATIVE_FIELDS.get(task):
            yield from ({**values, field.name: choice} for choice in field.choices)


def catalog_model_facts(entry: CatalogEntry) -> ModelFacts:
    """The facts that an engine is given for a model that only the catalog describes."""
    config = {
        "num_hidden_layers": entry.layers,
        "hidden_size": entry.hidden,
        "intermediate_size": entry.intermediate,
        "num_attention_heads": entry.heads,
        "num_key_value_heads": entry.kv_heads,
        "head_dim": entry.head_dim,
        "max_position_embeddings": entry.context_length,
    }
    known = {name: value for name, value in config.items() if value is not None}
    if entry.modality is Modality.VLM:
        known |= _NOT_IN_CATALOG_OF_VLM
    marker = KIND_MARKERS.get(_MODEL_KINDS.get(entry.modality, ModelKind.TEXT))
    # "WanTransformer3DModel x2": two networks of one class.
    network = entry.architecture.partition(" ")[0]
    # An imported pipeline has the class of its ``model_index.json``.
    architecture = str(entry.components.get("pipeline", network))
    return ModelFacts(
        name=entry.title,
        architecture=architecture,
        context_length=entry.context_length or 0,
        parameters=entry.parameters or 0,
        config={**_NOT_IN_CATALOG, **known, "architectures": [architecture]},
        files=frozenset({marker} if marker else ()),
        catalog_key=entry.key,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ChipVendor:
    """A chip vendor, named by its plug-in or only by the evidence."""

    name: str
    title: str
    #: None without a plug-in.
    kind: ChipKind | None
    #: Task → installed engines that do it on some of its chips, regardless of the model.
    engines: Mapping[CatalogTask, frozenset[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogSupportClaim:
    """One engine in one cell of the matrix."""

    engine: str
    title: str
    status: SupportLevel
    #: Engine versions that the evidence covers, as a PEP 440 specifier.
    versions: str
    methods: tuple[str, ...]
    evidence: tuple[str, ...]
    caveat: SupportCaveat | None
    #: Whether this installation has a plug-in for the engine.
    installed: bool
    #: Engine versions that the plug-in renders for; empty without a plug-in, or if the engine is built in.
    renders: str
    #: Why that plug-in does not render the task for this model on any of the vendor's chips; empty if it does.
    refusal: str

    @property
    def renderable(self) -> bool:
        """Whether this installation can start the task with this engine."""
        return not self.refusal

    @property
    def is_attested(self) -> bool:
        """Whether a source or a caveat refers to this model."""
        return bool(self.evidence or self.caveat)


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixRow:
    vendor: ChipVendor
    cells: Mapping[CatalogTask, tuple[CatalogSupportClaim, ...]]

    @property
    def has_claims(self) -> bool:
        """Whether any source refers to this model on the vendor's chips."""
        return any(claim.is_attested for claims in self.cells.values() for claim in claims)

    def status(self, task: CatalogTask) -> SupportLevel:
        """The strongest claim among engines that this installation renders."""
        return strongest_support(claim.status for claim in self.cells[task] if claim.renderable)


def chip_vendors() -> Mapping[str, ChipVendor]:
    """Every vendor with a plug-in, by name."""
    return _cached_vendors(tuple(adapter_registry.chip_plugins()), installed_engines())


@lru_cache(maxsize=4)
def _cached_vendors(names: tuple[str, ...], engines: frozenset[str]) -> Mapping[str, ChipVendor]:
    return {
        name: _catalog_vendor(adapter_registry.chip_plugins()[name], engines=engines)
        for name in names
    }


def _catalog_vendor(plugin: ChipPlugin, *, engines: frozenset[str]) -> ChipVendor:
    profile, chips = plugin.profile(), plugin.chips()
    return ChipVendor(
        name=profile.vendor,
        title=profile.title,
        kind=chips[0].kind if chips else None,
        engines={
            shown: frozenset(name for name in engines if _engine_runs_task(name, task, chips))
            for shown, task in TASKS.items()
        },
    )


def _engine_runs_task(engine: str, task: EngineTask, chips: Iterable[Chip]) -> bool:
    found = adapter_registry.engine_by_name(engine)
    return task in found.tasks and any(not found.unsupported_reason(task, chip) for chip in chips)


def vendor_by_name(name: str) -> ChipVendor:
    """The plug-in's vendor, or one that only the evidence names."""
    return chip_vendors().get(name) or ChipVendor(name=name, title=name, kind=None, engines={})


def _find_engine_profile(engine: str) -> EngineProfile | None:
    return (
        adapter_registry.engine_by_name(engine).profile() if engine in installed_engines() else None
    )


def engine_title(name: str) -> str:
    """Display name from its plug-in, else from the catalog."""
    profile = _find_engine_profile(name)
    return profile.title if profile else engine_titles().get(name, name)


def compatibility_matrix(entry: CatalogEntry) -> tuple[MatrixRow, ...]:
    """One row for each vendor: vendors named by the entry first, then GPUs before NPUs."""
    names = [
        *chip_vendors(),
        *(cell.vendor for cell in entry.cells if cell.vendor not in chip_vendors()),
    ]
    rows = [_matrix_row(entry, vendor_by_name(name)) for name in dict.fromkeys(names)]
    named = {cell.vendor for cell in entry.cells}
    return tuple(
        sorted(rows, key=lambda row: (row.vendor.name not in named, *vendor_sort_key(row.vendor)))
    )


def vendor_sort_key(vendor: ChipVendor) -> tuple[int, str]:
    """GPUs, NPUs, CPUs, then unknown kinds; within each by title."""
    kinds = (ChipKind.GPU, ChipKind.NPU, ChipKind.CPU)
    place = kinds.index(vendor.kind) if vendor.kind in kinds else len(kinds)
    return place, vendor.title.lower()


def _matrix_row(entry: CatalogEntry, vendor: ChipVendor) -> MatrixRow:
    cells = {
        task: tuple(
            sorted(
                (
                    *(
                        _support_claim(entry, cell, vendor)
                        for cell in entry.claims(task, vendor=vendor.name)
                    ),
                    *_unattested_claims(entry, task, vendor),
                ),
                key=lambda claim: (claim.status.rank, not claim.installed, claim.title.lower()),
            )
        )
        for task in CatalogTask
    }
    return MatrixRow(vendor=vendor, cells=cells)


def _support_claim(
    entry: CatalogEntry, cell: CompatibilityCell, vendor: ChipVendor
) -> CatalogSupportClaim:
    profile = _find_engine_profile(cell.engine)
    return CatalogSupportClaim(
        engine=cell.engine,
        title=engine_title(cell.engine),
        status=cell.status,
        versions=cell.versions,
        methods=cell.methods,
        evidence=cell.evidence,
        caveat=cell.caveat,
        installed=profile is not None,
        renders=profile.versions if profile else "",
        refusal=task_rendering_refusal(
            entry, task=cell.task, vendor=vendor.name, engine=cell.engine
        ),
    )


def _unattested_claims(
    entry: CatalogEntry, task: CatalogTask, vendor: ChipVendor
) -> list[CatalogSupportClaim]:
    """Claims of installed engines for the task on the vendor's chips that no source names for this model."""
    attested = {cell.engine for cell in entry.claims(task, vendor=vendor.name)}
    cells = (
        CompatibilityCell(task=task, vendor=vendor.name, engine=name, status=SupportLevel.UNKNOWN)
        for name in sorted(vendor.engines.get(task, frozenset()) - attested)
    )
    return [_support_claim(entry, cell, vendor) for cell in cells]


def is_task_rendered_on_any_chip(entry: CatalogEntry, task: CatalogTask) -> bool:
    """Whether any engine of this installation renders the task for the model on any chip."""
    return any(
        not task_rendering_refusal(entry, task=task, vendor=vendor.name, engine=engine)
        for vendor in chip_vendors().values()
        for engine in vendor.engines.get(task, frozenset())
    )
