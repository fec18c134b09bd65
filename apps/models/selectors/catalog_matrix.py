"""The matrix of one entry: each task on each vendor's chips by each engine, and what it rests on.

Vendors come from the installed chip plug-ins, engines from the evidence and from the installed plug-ins that run
on the vendor's chips. Each claim says two things apart: what a source says of this very model, and whether this
installation renders it, which the plug-in's ``check`` answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from apps.models.selectors.catalog import engine_titles
from apps.models.selectors.renderable import TASKS, installed_engines, refusal
from controlplane.domain.catalog import CatalogTask, Caveat, Cell, Entry, Support, best
from controlplane.domain.common.accelerators import Chip, ChipKind
from controlplane.ports import registry
from controlplane.ports.chips import ChipPlugin
from controlplane.ports.engines import EngineProfile, Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Vendor:
    """A maker of chips, as its plug-in or only the evidence names it."""

    name: str
    title: str
    #: None where no plug-in knows it.
    kind: ChipKind | None
    #: Task → engines of this installation that do it on some of its chips, whatever the model.
    engines: Mapping[CatalogTask, frozenset[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One engine in one square of the matrix."""

    engine: str
    title: str
    status: Support
    #: Versions that the evidence speaks of, as a PEP 440 specifier.
    versions: str
    methods: tuple[str, ...]
    evidence: tuple[str, ...]
    caveat: Caveat | None
    #: Whether this installation has a plug-in for the engine.
    installed: bool
    #: Versions that the plug-in renders for; empty without one, or where it is part of the product.
    renders: str
    #: Why that plug-in does not render the task for this model on any of the vendor's chips; empty if it does.
    refusal: str

    @property
    def renderable(self) -> bool:
        """Whether Ninefold can be asked for it today."""
        return not self.refusal

    @property
    def spoken(self) -> bool:
        """Whether a source or a person says it of this very model."""
        return bool(self.evidence or self.caveat)


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixRow:
    vendor: Vendor
    squares: Mapping[CatalogTask, tuple[Claim, ...]]

    @property
    def claimed(self) -> bool:
        """Whether anybody says anything of this model on these chips."""
        return any(claim.spoken for claims in self.squares.values() for claim in claims)

    def status(self, task: CatalogTask) -> Support:
        """The strongest claim of an engine that this installation renders it with."""
        return best(claim.status for claim in self.squares[task] if claim.renderable)


def vendors() -> Mapping[str, Vendor]:
    """Every vendor with a plug-in, by name."""
    return _vendors(tuple(registry.chip_plugins()), installed_engines())


@lru_cache(maxsize=4)
def _vendors(names: tuple[str, ...], engines: frozenset[str]) -> Mapping[str, Vendor]:
    return {name: _vendor(registry.chip_plugins()[name], engines=engines) for name in names}


def _vendor(plugin: ChipPlugin, *, engines: frozenset[str]) -> Vendor:
    profile, chips = plugin.profile(), plugin.chips()
    return Vendor(
        name=profile.vendor,
        title=profile.title,
        kind=chips[0].kind if chips else None,
        engines={
            shown: frozenset(name for name in engines if _runs(name, task, chips))
            for shown, task in TASKS.items()
        },
    )


def _runs(engine: str, task: Task, chips: Iterable[Chip]) -> bool:
    found = registry.engine(engine)
    return task in found.tasks and any(not found.runs_on(task, chip) for chip in chips)


def vendor_called(name: str) -> Vendor:
    """The plug-in's vendor, or one that only the evidence knows."""
    return vendors().get(name) or Vendor(name=name, title=name, kind=None, engines={})


def _profile(engine: str) -> EngineProfile | None:
    return registry.engine(engine).profile() if engine in installed_engines() else None


def engine_title(name: str) -> str:
    """What people call it: as its plug-in says, else as the catalog does."""
    profile = _profile(name)
    return profile.title if profile else engine_titles().get(name, name)


def matrix(entry: Entry) -> tuple[MatrixRow, ...]:
    """One row for each vendor: those that something is said of first, GPUs before NPUs."""
    names = [*vendors(), *(cell.vendor for cell in entry.cells if cell.vendor not in vendors())]
    rows = [_row(entry, vendor_called(name)) for name in dict.fromkeys(names)]
    named = {cell.vendor for cell in entry.cells}
    return tuple(
        sorted(rows, key=lambda row: (row.vendor.name not in named, *in_order(row.vendor)))
    )


def in_order(vendor: Vendor) -> tuple[int, str]:
    """GPUs, NPUs, CPUs, then what nobody knows; within each by title."""
    kinds = (ChipKind.GPU, ChipKind.NPU, ChipKind.CPU)
    place = kinds.index(vendor.kind) if vendor.kind in kinds else len(kinds)
    return place, vendor.title.lower()


def _row(entry: Entry, vendor: Vendor) -> MatrixRow:
    squares = {
        task: tuple(
            sorted(
                (
                    *(
                        _claim(entry, cell, vendor)
                        for cell in entry.claims(task, vendor=vendor.name)
                    ),
                    *_unspoken(entry, task, vendor),
                ),
                key=lambda claim: (claim.status.rank, not claim.installed, claim.title.lower()),
            )
        )
        for task in CatalogTask
    }
    return MatrixRow(vendor=vendor, squares=squares)


def _claim(entry: Entry, cell: Cell, vendor: Vendor) -> Claim:
    profile = _profile(cell.engine)
    return Claim(
        engine=cell.engine,
        title=engine_title(cell.engine),
        status=cell.status,
        versions=cell.versions,
        methods=cell.methods,
        evidence=cell.evidence,
        caveat=cell.caveat,
        installed=profile is not None,
        renders=profile.versions if profile else "",
        refusal=refusal(entry, task=cell.task, vendor=vendor.name, engine=cell.engine),
    )


def _unspoken(entry: Entry, task: CatalogTask, vendor: Vendor) -> list[Claim]:
    """Installed engines that do the task on the vendor's chips, and of which no source speaks here."""
    spoken = {cell.engine for cell in entry.claims(task, vendor=vendor.name)}
    cells = (
        Cell(task=task, vendor=vendor.name, engine=name, status=Support.UNKNOWN)
        for name in sorted(vendor.engines.get(task, frozenset()) - spoken)
    )
    return [_claim(entry, cell, vendor) for cell in cells]


def renderable_somewhere(entry: Entry, task: CatalogTask) -> bool:
    """Whether any engine of this installation renders the task for the model on anybody's chips."""
    return any(
        not refusal(entry, task=task, vendor=vendor.name, engine=engine)
        for vendor in vendors().values()
        for engine in vendor.engines.get(task, frozenset())
    )
