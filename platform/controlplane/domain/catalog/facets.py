"""Faceted search of the catalog, with the number of entries for each further choice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from controlplane.domain.catalog.entries import (
    CatalogEntry,
    CatalogTask,
    CompatibilityCell,
    Support,
)


class Facet(StrEnum):
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


_BILLION = 1_000_000_000
#: Upper bound of each class, itself excluded.
_BOUNDS: tuple[tuple[int, SizeClass], ...] = (
    (1 * _BILLION, SizeClass.SMALL),
    (4 * _BILLION, SizeClass.LIGHT),
    (10 * _BILLION, SizeClass.MEDIUM),
    (40 * _BILLION, SizeClass.LARGE),
    (100 * _BILLION, SizeClass.HUGE),
)
#: Facets of which an entry must have every chosen value.
VENDOR_FACETS = frozenset({Facet.TRAIN, Facet.SERVE, Facet.QUANTIZE})
_TASKS = {
    Facet.TRAIN: CatalogTask.TRAIN,
    Facet.SERVE: CatalogTask.SERVE,
    Facet.QUANTIZE: CatalogTask.QUANTIZE,
}
FacetSelection = Mapping[Facet, frozenset[str]]
#: Whether this installation renders what a cell claims of the entry.
Renders = Callable[[CatalogEntry, CompatibilityCell], bool]


def size_class(parameters: int | None) -> SizeClass:
    if parameters is None:
        return SizeClass.UNKNOWN
    return next((size for bound, size in _BOUNDS if parameters < bound), SizeClass.GIANT)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedEntry:
    """An entry with its facet values and searchable text."""

    entry: CatalogEntry
    values: Mapping[Facet, frozenset[str]]
    #: Lower case.
    text: str

    def fits(self, facet: Facet, chosen: frozenset[str]) -> bool:
        own = self.values[facet]
        return chosen <= own if facet in VENDOR_FACETS else not chosen.isdisjoint(own)


def index_entries(entries: Iterable[CatalogEntry], *, renders: Renders) -> tuple[IndexedEntry, ...]:
    """The entries, indexed for search. A vendor counts for a task if a source claims support and ``renders`` is
    true.
    """
    return tuple(
        IndexedEntry(
            entry=entry,
            values={facet: _values(entry, facet, renders) for facet in Facet},
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


def _values(entry: CatalogEntry, facet: Facet, renders: Renders) -> frozenset[str]:
    if facet in _TASKS:
        return frozenset(
            claim.vendor
            for claim in entry.claims(_TASKS[facet])
            if claim.status is Support.SUPPORTED and renders(entry, claim)
        )
    if facet is Facet.TASK:
        return frozenset(entry.tasks)
    single = {
        Facet.MODALITY: entry.modality.value,
        Facet.SIZE: size_class(entry.parameters).value,
        Facet.FAMILY: entry.family,
        Facet.LICENCE: entry.licence or "unknown",
    }
    return frozenset({single[facet]})


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogSearchResult:
    """Matching entries in the given order, and the count of each further facet value."""

    entries: tuple[CatalogEntry, ...]
    counts: Mapping[Facet, Mapping[str, int]] = field(default_factory=dict)


def fitting(
    rows: Iterable[IndexedEntry], *, choice: FacetSelection, text: str = ""
) -> tuple[CatalogEntry, ...]:
    """The entries that contain every word of the text and match the selection of each facet."""
    chosen = _chosen(choice)
    return tuple(
        row.entry for row in _filter_text(rows, text) if not _unmatched_facets(row, chosen)
    )


def search_with_counts(
    rows: Iterable[IndexedEntry], *, choice: FacetSelection, text: str = ""
) -> CatalogSearchResult:
    """The same, with the count of each further facet value."""
    chosen = _chosen(choice)
    counts: dict[Facet, Counter[str]] = {facet: Counter() for facet in Facet}
    entries: list[CatalogEntry] = []
    for row in _filter_text(rows, text):
        missed = _unmatched_facets(row, chosen)
        if not missed:
            entries.append(row.entry)
            seen: Iterable[Facet] = Facet
        else:
            # A different selection of the one unmatched facet would include it.
            seen = missed - VENDOR_FACETS if len(missed) == 1 else ()
        for facet in seen:
            counts[facet].update(row.values[facet])
    return CatalogSearchResult(entries=tuple(entries), counts=counts)


def _chosen(choice: FacetSelection) -> FacetSelection:
    return {facet: values for facet, values in choice.items() if values}


def _filter_text(rows: Iterable[IndexedEntry], text: str) -> Iterable[IndexedEntry]:
    words = text.lower().split()
    return (row for row in rows if all(word in row.text for word in words))


def _unmatched_facets(row: IndexedEntry, chosen: FacetSelection) -> frozenset[Facet]:
    """Facets of which the row has no selected value."""
    return frozenset(facet for facet, values in chosen.items() if not row.fits(facet, values))
