"""The catalog, as it was last loaded. It is small and changes by a load only, so every process keeps it.

Each question first asks the database which catalog there is — one query for a digest of all entries — and
reads the rows only where that is another than the one it has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from importlib import resources
from typing import Any

from django.contrib.postgres.aggregates import StringAgg
from django.db.models import CharField, F, Value
from django.db.models.functions import MD5, Cast, Coalesce, Concat

from apps.models.models import CatalogCell, CatalogModel, ModelVersion
from apps.models.selectors.renderable import installed_engines, renders
from controlplane.domain.architectures import (
    ConfigRefused,
    Contradiction,
    contradictions,
    read,
)
from controlplane.domain.catalog import CatalogTask, Caveat, Cell, Entry, Modality, Source, Support
from controlplane.domain.catalog.entries import architecture_facts, in_order
from controlplane.domain.catalog.facets import (
    Choice,
    Facet,
    Indexed,
    Narrowed,
    fitting,
    index,
    narrow,
)
from controlplane.domain.catalog.reading import Catalog, read_catalog

#: Fields of an entry that its row has under the same name.
COLUMNS = tuple(field.name for field in fields(Entry) if field.name != "cells")
_LISTS = frozenset({"tasks", "evidence", "prequantized"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf:
    """Every entry that is not withdrawn, by key, and a name for exactly this content."""

    revision: str
    entries: Mapping[str, Entry]


def shelf() -> Shelf:
    """The catalog of now; one query, two more after a load."""
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
    return shelf_at(found["revision"])


@lru_cache(maxsize=2)
def shelf_at(revision: str) -> Shelf:
    """The catalog of that revision, which must be the newest one or one that was asked for lately."""
    rows = CatalogModel.objects.filter(withdrawn_at=None).prefetch_related("cells")
    return Shelf(revision=revision, entries={row.key: entry_of(row) for row in rows})


def entry_of(row: CatalogModel) -> Entry:
    """The entry that a row keeps, cells included."""
    facts: dict[str, Any] = {
        name: tuple(value) if name in _LISTS else value
        for name in COLUMNS
        for value in (getattr(row, name),)
    }
    facts["modality"] = Modality(row.modality)
    return Entry(**facts, cells=in_order(_cell_of(cell) for cell in row.cells.all()))


def _cell_of(cell: CatalogCell) -> Cell:
    return Cell(
        task=CatalogTask(cell.task),
        vendor=cell.vendor,
        engine=cell.engine,
        status=Support(cell.status),
        versions=cell.versions,
        methods=tuple(cell.methods),
        evidence=tuple(cell.evidence),
        caveat=Caveat(cell.caveat) if cell.caveat else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogIndex:
    """The catalog of one revision, ready to be searched."""

    revision: str
    #: That the installation has plug-ins for.
    engines: frozenset[str]
    #: By title.
    rows: tuple[Indexed, ...]
    #: Every value that each facet has.
    values: Mapping[Facet, frozenset[str]]

    def search(self, *, choice: Choice, text: str = "") -> Narrowed:
        """Entries that fit, with the counts of further choices."""
        return narrow(self.rows, choice=choice, text=text)

    def fitting(self, *, choice: Choice, text: str = "") -> tuple[Entry, ...]:
        """Entries that fit, alone."""
        return fitting(self.rows, choice=choice, text=text)


def catalog_index() -> CatalogIndex:
    """The catalog of now; one query, two more after a load."""
    return index_at(shelf().revision, installed_engines())


@lru_cache(maxsize=4)
def index_at(revision: str, engines: frozenset[str]) -> CatalogIndex:
    """The same of a revision that was asked for lately, for so many engines."""
    entries = sorted(shelf_at(revision).entries.values(), key=lambda entry: entry.title.lower())
    rows = index(entries, renders=_renders)
    values = {facet: frozenset().union(*(row.values[facet] for row in rows)) for facet in Facet}
    return CatalogIndex(revision=revision, engines=engines, rows=rows, values=values)


def _renders(entry: Entry, cell: Cell) -> bool:
    return renders(entry, task=cell.task, vendor=cell.vendor, engine=cell.engine)


def catalog_entry(key: str) -> tuple[Entry, bool] | None:
    """The entry of that key and whether it is withdrawn; None if there never was one."""
    if (entry := shelf().entries.get(key)) is not None:
        return entry, False
    row = CatalogModel.objects.filter(key=key).prefetch_related("cells").first()
    return None if row is None else (entry_of(row), row.withdrawn_at is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """How a version's ``config.json`` compares with the catalog."""

    contradictions: tuple[Contradiction, ...] = ()
    #: Why it could not be compared, one sentence each.
    problems: tuple[str, ...] = ()


def differences_of(version: ModelVersion, *, entry: Entry) -> Differences:
    """Every field in which the version's own configuration and the entry say different things."""
    if version.config is None:
        return Differences()
    # What quantized weights hold is packed, so that counting it says nothing.
    counted = None if version.scheme else version.parameters or None
    try:
        built = read(version.config, parameters=counted)
    except ConfigRefused as refusal:
        return Differences(problems=tuple(finding.message for finding in refusal.findings))
    return Differences(contradictions=contradictions(built, architecture_facts(entry)))


@lru_cache(maxsize=1)
def published() -> Catalog:
    """The catalog that this release ships, read from its data files.

    :raises CatalogRefused: if they break their own rules.
    """
    folder = resources.files("controlplane") / "catalog"
    files = {
        file.name: file.read_text(encoding="utf-8")
        for file in folder.iterdir()
        if file.name.endswith(".toml")
    }
    return read_catalog(files)


@lru_cache(maxsize=64)
def models_taken(*, task: CatalogTask, vendor: str) -> Mapping[str, int]:
    """Engine → of how many models a source says that it does the task on the vendor's chips."""
    claims = (
        cell
        for entry in published().entries.values()
        for cell in entry.claims(task, vendor=vendor)
        if cell.status in (Support.SUPPORTED, Support.EXPERIMENTAL)
    )
    return Counter(cell.engine for cell in claims)


def sources() -> Mapping[str, Source]:
    """What the keys of evidence stand for."""
    return published().sources


def engine_titles() -> Mapping[str, str]:
    """What people call the engines that the evidence names."""
    return published().engines
