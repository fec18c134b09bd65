"""The list of the catalog: query parameters, facets, rows and pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from django.http import HttpRequest, QueryDict
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.safestring import SafeString
from django.utils.translation import get_language
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from apps.models.selectors import catalog as selectors
from apps.models.selectors.catalog import (
    ChipVendor,
    chip_vendors,
    engine_title,
    is_task_rendered,
    vendor_by_name,
    vendor_sort_key,
)
from apps.models.web.catalog_labels import (
    ABILITIES,
    FACETS,
    MODALITIES,
    SIZES,
    TASKS,
    support_display_state,
)
from controlplane.domain.catalog import (
    CatalogEntry,
    CatalogTask,
    Modality,
    SupportLevel,
    strongest_support,
)
from controlplane.domain.catalog.entries import VENDOR_FACETS, CatalogFacet, SizeClass
from controlplane.web.tables import TableHeading

PAGE_SIZE = 30
#: Entries in one comparison.
MAX_COMPARED = 4
#: Facets that are expanded by default.
_OPEN_FACETS = (CatalogFacet.MODALITY, CatalogFacet.TRAIN, CatalogFacet.SERVE)
_ORDERS: Mapping[str, Callable[[CatalogEntry], Any]] = {
    "title": lambda entry: entry.title.lower(),
    "parameters": lambda entry: entry.parameters,
    "context": lambda entry: entry.context_length,
}
_COLUMNS: tuple[tuple[str, str | Promise, bool], ...] = (
    ("title", lazy("Model"), False),
    ("parameters", lazy("Parameters"), True),
    ("context", lazy("Context"), True),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FacetOption:
    value: str
    label: str
    #: Entries that match if it is selected.
    count: int
    chosen: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FacetDisplay:
    name: str
    label: str | Promise
    options: tuple[FacetOption, ...]
    #: Vendors without a supported model that this installation renders.
    unattested: tuple[FacetOption, ...]
    open: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class VendorTaskSupport:
    """Support of one task on one vendor's chips, in short form."""

    #: Chip kind if only one vendor has it, else the vendor.
    chips: str
    #: Display state.
    support_state: str
    #: The vendor, and the engines with that state.
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogList:
    """One page of the list with facets, headings and links."""

    total: int
    count: int
    facets: tuple[FacetDisplay, ...]
    rows: tuple[SafeString, ...]
    columns: tuple[TableHeading, ...]
    #: ``(title, URL without it)`` of the entries selected for comparison.
    compared: tuple[tuple[str, str], ...]
    compare_href: str
    first_href: str
    next_href: str
    clear_href: str
    #: Messages for ignored query values.
    ignored: tuple[str, ...]
    text: str
    sort: str

    @property
    def filtered(self) -> bool:
        return bool(self.text) or any(option.chosen for f in self.facets for option in f.options)


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedCatalogList:
    """A list with its HTML."""

    listing: CatalogList
    html: SafeString


def render_catalog_list(request: HttpRequest) -> RenderedCatalogList:
    """The list for the request's query; one database query.

    The list is the same for every user, so rendered lists are cached.
    """
    index = selectors.catalog_index()
    return _cached_catalog_list(
        index.revision, index.engines, get_language() or "", request.GET.urlencode()
    )


@lru_cache(maxsize=64)
def _cached_catalog_list(
    revision: str, engines: frozenset[str], language: str, query: str
) -> RenderedCatalogList:
    index = selectors.catalog_index_at(revision, engines)
    listing = _build_list(QueryDict(query), index, language=language)
    html = render_to_string("registry/catalog_results.html", {"listing": listing})
    return RenderedCatalogList(listing=listing, html=html)


def _build_list(query: QueryDict, index: selectors.CatalogIndex, *, language: str) -> CatalogList:
    text = query.get("q", "").strip()[:100]
    choice, ignored = _selected_facets(query, index)
    found = index.search(choice=choice, text=text)
    sort, descending = _parse_sort(query.get("sort", ""))
    entries = _sort_entries(found.entries, sort, descending=descending)
    page = _parse_page(query.get("page", ""), len(entries))
    shown = entries[(page - 1) * PAGE_SIZE : page * PAGE_SIZE]
    ids = _selected_keys(query, index.revision)
    row_key = (index.revision, index.engines, language)
    return CatalogList(
        total=len(index.rows),
        count=len(entries),
        facets=tuple(
            _facet_view(facet, found.counts[facet], choice[facet], _selectable_values(index, facet))
            for facet in FACETS
        ),
        rows=tuple(_table_row(row_key, one.key, chosen=one.key in ids) for one in shown),
        columns=tuple(_column_headings(query, sort, descending=descending)),
        compared=_compared_entries(query, ids, index.revision),
        compare_href=f"{reverse('catalog-compare')}?ids={','.join(ids)}" if len(ids) > 1 else "",
        first_href=_list_url(query, page="") if page > 1 else "",
        next_href=_list_url(query, page=str(page + 1)) if page * PAGE_SIZE < len(entries) else "",
        clear_href=reverse("catalog"),
        ignored=ignored,
        text=text,
        sort=query.get("sort", ""),
    )


def _selectable_values(index: selectors.CatalogIndex, facet: CatalogFacet) -> frozenset[str]:
    """Selectable values of a facet: those of entries, and every vendor with a plug-in."""
    return index.values[facet] | (
        frozenset(chip_vendors()) if facet in VENDOR_FACETS else frozenset()
    )


def _selected_facets(
    query: QueryDict, index: selectors.CatalogIndex
) -> tuple[dict[CatalogFacet, frozenset[str]], tuple[str, ...]]:
    """The selected values of each facet, and messages for values that were ignored."""
    choice: dict[CatalogFacet, frozenset[str]] = {}
    ignored: list[str] = []
    for facet in CatalogFacet:
        given = frozenset(query.getlist(facet.value))
        choice[facet] = given & _selectable_values(index, facet)
        ignored += [
            _("Filter ignored: “%(value)s” is not a value of “%(facet)s”.")
            % {"value": value[:40], "facet": FACETS[facet]}
            for value in sorted(given - choice[facet])
            if value
        ]
    return choice, tuple(ignored)


def _parse_sort(requested: str) -> tuple[str, bool]:
    key = requested.removeprefix("-")
    return (key, requested.startswith("-")) if key in _ORDERS else ("title", False)


def _sort_entries(
    entries: Sequence[CatalogEntry], sort: str, *, descending: bool
) -> list[CatalogEntry]:
    """Sorted by that column, unknown values last; ties stay in title order."""
    order = _ORDERS[sort]
    known = [entry for entry in entries if order(entry) is not None]
    unknown = [entry for entry in entries if order(entry) is None]
    return [*sorted(known, key=order, reverse=descending), *unknown]


def _parse_page(requested: str, count: int) -> int:
    """The requested page if it exists, else the first."""
    last = max(1, -(-count // PAGE_SIZE))
    wanted = int(requested) if requested.isdecimal() and len(requested) < len(str(MAX_PAGES)) else 1
    return wanted if 1 <= wanted <= last else 1


#: Upper limit of page numbers; longer numbers are not parsed.
MAX_PAGES = 10_000


def _selected_keys(query: QueryDict, revision: str) -> list[str]:
    """Keys selected for comparison, each once, up to ``MAX_COMPARED``."""
    known = selectors.catalog_snapshot_at(revision).entries
    return [key for key in dict.fromkeys(query.getlist("ids")) if key in known][:MAX_COMPARED]


def _list_url(query: QueryDict, **changes: str) -> str:
    """URL of this list with some parameters changed; empty ones are removed."""
    changed = query.copy()
    for name, value in changes.items():
        changed.setlist(name, [value] if value else [])
    return f"{reverse('catalog')}?{changed.urlencode()}"


def _compared_entries(
    query: QueryDict, ids: Sequence[str], revision: str
) -> tuple[tuple[str, str], ...]:
    entries = selectors.catalog_snapshot_at(revision).entries
    links: list[tuple[str, str]] = []
    for key in ids:
        without = query.copy()
        without.setlist("ids", [other for other in ids if other != key])
        links.append((entries[key].title, f"{reverse('catalog')}?{without.urlencode()}"))
    return tuple(links)


def _column_headings(query: QueryDict, sort: str, *, descending: bool) -> list[TableHeading]:
    headings = [
        TableHeading(
            key=key,
            label=label,
            numeric=numeric,
            href=_list_url(
                query, page="", sort=f"-{key}" if key == sort and not descending else key
            ),
            direction=("descending" if descending else "ascending") if key == sort else "",
        )
        for key, label, numeric in _COLUMNS
    ]
    tasks = [
        TableHeading(key=task.value, label=label, numeric=False, href="", direction="")
        for task, label in TASKS.items()
    ]
    return [*headings, *tasks]


def _facet_view(
    facet: CatalogFacet, counts: Mapping[str, int], chosen: frozenset[str], known: frozenset[str]
) -> FacetDisplay:
    options = [
        FacetOption(
            value=value,
            label=_value_label(facet, value),
            count=counts.get(value, 0),
            chosen=value in chosen,
        )
        for value in _order_facet_values(facet, known)
    ]
    shown = [one for one in options if one.count or one.chosen]
    unattested = [one for one in options if facet in VENDOR_FACETS and one not in shown]
    return FacetDisplay(
        name=facet.value,
        label=FACETS[facet],
        options=tuple(shown),
        unattested=tuple(unattested),
        open=bool(chosen) or facet in _OPEN_FACETS,
    )


def _order_facet_values(facet: CatalogFacet, known: frozenset[str]) -> list[str]:
    if facet is CatalogFacet.MODALITY:
        return [modality.value for modality in Modality if modality.value in known]
    if facet is CatalogFacet.SIZE:
        return [size.value for size in SizeClass if size.value in known]
    if facet in VENDOR_FACETS:
        return sorted(known, key=lambda value: vendor_sort_key(vendor_by_name(value)))
    return sorted(known, key=lambda value: _value_label(facet, value).lower())


def _value_label(facet: CatalogFacet, value: str) -> str:
    if facet in VENDOR_FACETS:
        vendor = vendor_by_name(value)
        kind = vendor.kind.value.upper() if vendor.kind else ""
        return vendor.title if not kind or vendor.title == kind else f"{vendor.title} · {kind}"
    if facet is CatalogFacet.MODALITY:
        return str(MODALITIES[Modality(value)])
    if facet is CatalogFacet.SIZE:
        return str(SIZES[SizeClass(value)])
    if facet is CatalogFacet.TASK:
        return str(ABILITIES.get(value, value))
    return str(_("unknown")) if value == "unknown" else value


@lru_cache(maxsize=2048)
def _table_row(row_key: tuple[str, frozenset[str], str], key: str, *, chosen: bool) -> SafeString:
    """One table row, cached per revision, set of engines and language."""
    entry = selectors.catalog_snapshot_at(row_key[0]).entries[key]
    context = {
        "entry": entry,
        "chosen": chosen,
        "modality": MODALITIES[entry.modality],
        "cells": [(label, vendor_support(entry, task)) for task, label in TASKS.items()],
    }
    return render_to_string("registry/catalog_row.html", context)


def vendor_support(entry: CatalogEntry, task: CatalogTask) -> list[VendorTaskSupport]:
    """For each vendor named by a source, the support by engines that this installation renders."""
    names = {cell.vendor for cell in entry.claims(task)}
    found = sorted((vendor_by_name(name) for name in names), key=vendor_sort_key)
    kinds = [vendor.kind for vendor in found]
    return [
        _support_on_vendor(
            entry, task, vendor, alone=bool(vendor.kind) and kinds.count(vendor.kind) == 1
        )
        for vendor in found
    ]


def _support_on_vendor(
    entry: CatalogEntry, task: CatalogTask, vendor: ChipVendor, *, alone: bool
) -> VendorTaskSupport:
    every = entry.claims(task, vendor=vendor.name)
    ours = [
        claim
        for claim in every
        if is_task_rendered(entry, task=task, vendor=vendor.name, engine=claim.engine)
    ]
    status = strongest_support(claim.status for claim in ours)
    anywhere = strongest_support(claim.status for claim in every)
    elsewhere = not ours and anywhere.rank < SupportLevel.UNKNOWN.rank
    shown_support = anywhere if elsewhere else status
    named = [
        engine_title(claim.engine) for claim in (ours or every) if claim.status is shown_support
    ]
    return VendorTaskSupport(
        chips=vendor.kind.value.upper() if alone and vendor.kind else vendor.title,
        support_state="elsewhere" if elsewhere else support_display_state(status),
        title=f"{vendor.title}: {str(_(', ')).join(named)}",
    )
