"""Narrowing the catalog, and how many entries each further choice would leave.

Within a facet one of the chosen values must fit; of chips every chosen one, for who chooses two wants a model
that runs on both. The count beside a value is what one would see after choosing it, with all other facets as
they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from controlplane.domain.catalog.entries import CatalogTask, Cell, Entry, Support


class Facet(StrEnum):
    """What entries can be told apart by."""

    MODALITY = "modality"
    TRAIN = "train"
    SERVE = "serve"
    QUANTIZE = "quantize"
    SIZE = "size"
    TASK = "task"
    FAMILY = "family"
    LICENCE = "licence"


class Size(StrEnum):
    """Parameters, in classes that need about as many cards."""

    SMALL = "under-1b"
    LIGHT = "1b-4b"
    MEDIUM = "4b-10b"
    LARGE = "10b-40b"
    HUGE = "40b-100b"
    GIANT = "over-100b"
    UNKNOWN = "unknown"


_BILLION = 1_000_000_000
#: Upper bound of each class, itself excluded.
_BOUNDS: tuple[tuple[int, Size], ...] = (
    (1 * _BILLION, Size.SMALL),
    (4 * _BILLION, Size.LIGHT),
    (10 * _BILLION, Size.MEDIUM),
    (40 * _BILLION, Size.LARGE),
    (100 * _BILLION, Size.HUGE),
)
#: Facets of which an entry must have every chosen value.
ALL_OF = frozenset({Facet.TRAIN, Facet.SERVE, Facet.QUANTIZE})
_TASKS = {
    Facet.TRAIN: CatalogTask.TRAIN,
    Facet.SERVE: CatalogTask.SERVE,
    Facet.QUANTIZE: CatalogTask.QUANTIZE,
}
Choice = Mapping[Facet, frozenset[str]]
#: Whether this installation renders what a cell claims of the entry.
Renders = Callable[[Entry, Cell], bool]


def size_class(parameters: int | None) -> Size:
    if parameters is None:
        return Size.UNKNOWN
    return next((size for bound, size in _BOUNDS if parameters < bound), Size.GIANT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexed:
    """An entry with what it is found by."""

    entry: Entry
    values: Mapping[Facet, frozenset[str]]
    #: Lower case.
    text: str

    def fits(self, facet: Facet, chosen: frozenset[str]) -> bool:
        own = self.values[facet]
        return chosen <= own if facet in ALL_OF else not chosen.isdisjoint(own)


def index(entries: Iterable[Entry], *, renders: Renders) -> tuple[Indexed, ...]:
    """The entries, ready to be narrowed. On a vendor's chips counts what a source supports and ``renders``."""
    return tuple(
        Indexed(
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


def _values(entry: Entry, facet: Facet, renders: Renders) -> frozenset[str]:
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
class Narrowed:
    """What fits, in the given order, and what each further choice would leave."""

    entries: tuple[Entry, ...]
    counts: Mapping[Facet, Mapping[str, int]] = field(default_factory=dict)


def fitting(rows: Iterable[Indexed], *, choice: Choice, text: str = "") -> tuple[Entry, ...]:
    """The entries with every word of the text that fit each facet's choice."""
    chosen = _chosen(choice)
    return tuple(row.entry for row in _with(rows, text) if not _missed(row, chosen))


def narrow(rows: Iterable[Indexed], *, choice: Choice, text: str = "") -> Narrowed:
    """The same, with the counts of every further choice."""
    chosen = _chosen(choice)
    counts: dict[Facet, Counter[str]] = {facet: Counter() for facet in Facet}
    entries: list[Entry] = []
    for row in _with(rows, text):
        missed = _missed(row, chosen)
        if not missed:
            entries.append(row.entry)
            seen: Iterable[Facet] = Facet
        else:
            # Another value of the one facet that it misses would bring it back.
            seen = missed - ALL_OF if len(missed) == 1 else ()
        for facet in seen:
            counts[facet].update(row.values[facet])
    return Narrowed(entries=tuple(entries), counts=counts)


def _chosen(choice: Choice) -> Choice:
    return {facet: values for facet, values in choice.items() if values}


def _with(rows: Iterable[Indexed], text: str) -> Iterable[Indexed]:
    words = text.lower().split()
    return (row for row in rows if all(word in row.text for word in words))


def _missed(row: Indexed, chosen: Choice) -> frozenset[Facet]:
    """Facets of which it has no chosen value."""
    return frozenset(facet for facet, values in chosen.items() if not row.fits(facet, values))
