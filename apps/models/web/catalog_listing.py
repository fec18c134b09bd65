"""The catalog's list: what the address asks for, and what the page shows of it."""

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
from apps.models.selectors.catalog_matrix import (
    Vendor,
    engine_title,
    in_order,
    vendor_called,
    vendors,
)
from apps.models.selectors.renderable import renders
from apps.models.web.catalog_words import ABILITIES, FACETS, MODALITIES, SIZES, TASKS, look
from controlplane.domain.catalog import CatalogTask, Entry, Modality, Support, best
from controlplane.domain.catalog.facets import ALL_OF, Facet, Size
from controlplane.web.tables import Heading

PAGE_SIZE = 30
#: Entries that one comparison shows side by side.
MOST_COMPARED = 4
#: Facets that are open before anything is chosen.
_OPEN = (Facet.MODALITY, Facet.TRAIN, Facet.SERVE)
_ORDERS: Mapping[str, Callable[[Entry], Any]] = {
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
class Option:
    """One value of a facet."""

    value: str
    label: str
    #: Entries that would be left after choosing it.
    count: int
    chosen: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FacetView:
    name: str
    label: str | Promise
    options: tuple[Option, ...]
    #: Chips without a model that a source supports there and that is rendered here.
    silent: tuple[Option, ...]
    open: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """What is known of one task on one vendor's chips, in short."""

    #: The kind of the chips where one vendor has that, else the vendor.
    chips: str
    #: Key of the product's states.
    look: str
    #: The vendor, and the engines that the look speaks of.
    said_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """One page of the list and everything around it."""

    total: int
    count: int
    facets: tuple[FacetView, ...]
    rows: tuple[SafeString, ...]
    columns: tuple[Heading, ...]
    #: ``(title, address without it)`` of the entries chosen for comparison.
    compared: tuple[tuple[str, str], ...]
    compare_href: str
    first_href: str
    next_href: str
    clear_href: str
    #: Values of the address that are none, in words.
    ignored: tuple[str, ...]
    text: str
    sort: str

    @property
    def filtered(self) -> bool:
        return bool(self.text) or any(option.chosen for f in self.facets for option in f.options)


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnList:
    """A listing with its markup."""

    listing: Listing
    html: SafeString


def drawn_list(request: HttpRequest) -> DrawnList:
    """What the request's query asks for; one query to the database.

    The list is the same for everybody, so what was drawn lately is not drawn again.
    """
    index = selectors.catalog_index()
    return _drawn(index.revision, index.engines, get_language() or "", request.GET.urlencode())


@lru_cache(maxsize=64)
def _drawn(revision: str, engines: frozenset[str], language: str, query: str) -> DrawnList:
    index = selectors.index_at(revision, engines)
    listing = _listing(QueryDict(query), index, language=language)
    html = render_to_string("registry/catalog_found.html", {"listing": listing})
    return DrawnList(listing=listing, html=html)


def _listing(query: QueryDict, index: selectors.CatalogIndex, *, language: str) -> Listing:
    text = query.get("q", "").strip()[:100]
    choice, ignored = _choice(query, index)
    found = index.search(choice=choice, text=text)
    sort, descending = _sort(query.get("sort", ""))
    entries = _sorted(found.entries, sort, descending=descending)
    page = _page(query.get("page", ""), len(entries))
    shown = entries[(page - 1) * PAGE_SIZE : page * PAGE_SIZE]
    ids = _ids(query, index.revision)
    drawn = (index.revision, index.engines, language)
    return Listing(
        total=len(index.rows),
        count=len(entries),
        facets=tuple(
            _facet(facet, found.counts[facet], choice[facet], _known(index, facet))
            for facet in FACETS
        ),
        rows=tuple(_row(drawn, one.key, chosen=one.key in ids) for one in shown),
        columns=tuple(_headings(query, sort, descending=descending)),
        compared=_compared(query, ids, index.revision),
        compare_href=f"{reverse('catalog-compare')}?ids={','.join(ids)}" if len(ids) > 1 else "",
        first_href=_address(query, page="") if page > 1 else "",
        next_href=_address(query, page=str(page + 1)) if page * PAGE_SIZE < len(entries) else "",
        clear_href=reverse("catalog"),
        ignored=ignored,
        text=text,
        sort=query.get("sort", ""),
    )


def _known(index: selectors.CatalogIndex, facet: Facet) -> frozenset[str]:
    """What can be chosen of a facet: what entries have, and every chip that a plug-in knows."""
    return index.values[facet] | (frozenset(vendors()) if facet in ALL_OF else frozenset())


def _choice(
    query: QueryDict, index: selectors.CatalogIndex
) -> tuple[dict[Facet, frozenset[str]], tuple[str, ...]]:
    """What is chosen of each facet, and in words what was left out because it is no value."""
    choice: dict[Facet, frozenset[str]] = {}
    ignored: list[str] = []
    for facet in Facet:
        given = frozenset(query.getlist(facet.value))
        choice[facet] = given & _known(index, facet)
        ignored += [
            _("“%(value)s” was left out: it is no value of “%(facet)s”.")
            % {"value": value[:40], "facet": FACETS[facet]}
            for value in sorted(given - choice[facet])
            if value
        ]
    return choice, tuple(ignored)


def _sort(asked: str) -> tuple[str, bool]:
    key = asked.removeprefix("-")
    return (key, asked.startswith("-")) if key in _ORDERS else ("title", False)


def _sorted(entries: Sequence[Entry], sort: str, *, descending: bool) -> list[Entry]:
    """By that column, what is not known last; equal ones stay in the order of titles."""
    order = _ORDERS[sort]
    known = [entry for entry in entries if order(entry) is not None]
    unknown = [entry for entry in entries if order(entry) is None]
    return [*sorted(known, key=order, reverse=descending), *unknown]


def _page(asked: str, count: int) -> int:
    """The page that was asked for if there is such a one, else the first."""
    last = max(1, -(-count // PAGE_SIZE))
    wanted = int(asked) if asked.isdecimal() and len(asked) < len(str(MOST_PAGES)) else 1
    return wanted if 1 <= wanted <= last else 1


#: Far more than there can be; longer numbers are not read.
MOST_PAGES = 10_000


def _ids(query: QueryDict, revision: str) -> list[str]:
    """Keys chosen for comparison, each once, no more than fit side by side."""
    known = selectors.shelf_at(revision).entries
    return [key for key in dict.fromkeys(query.getlist("ids")) if key in known][:MOST_COMPARED]


def _address(query: QueryDict, **changes: str) -> str:
    """This list with some parameters changed; empty ones are left out."""
    changed = query.copy()
    for name, value in changes.items():
        changed.setlist(name, [value] if value else [])
    return f"{reverse('catalog')}?{changed.urlencode()}"


def _compared(query: QueryDict, ids: Sequence[str], revision: str) -> tuple[tuple[str, str], ...]:
    entries = selectors.shelf_at(revision).entries
    links: list[tuple[str, str]] = []
    for key in ids:
        without = query.copy()
        without.setlist("ids", [other for other in ids if other != key])
        links.append((entries[key].title, f"{reverse('catalog')}?{without.urlencode()}"))
    return tuple(links)


def _headings(query: QueryDict, sort: str, *, descending: bool) -> list[Heading]:
    headings = [
        Heading(
            key=key,
            label=label,
            numeric=numeric,
            href=_address(
                query, page="", sort=f"-{key}" if key == sort and not descending else key
            ),
            direction=("descending" if descending else "ascending") if key == sort else "",
        )
        for key, label, numeric in _COLUMNS
    ]
    tasks = [
        Heading(key=task.value, label=label, numeric=False, href="", direction="")
        for task, label in TASKS.items()
    ]
    return [*headings, *tasks]


def _facet(
    facet: Facet, counts: Mapping[str, int], chosen: frozenset[str], known: frozenset[str]
) -> FacetView:
    options = [
        Option(
            value=value,
            label=_value_label(facet, value),
            count=counts.get(value, 0),
            chosen=value in chosen,
        )
        for value in _in_order(facet, known)
    ]
    shown = [one for one in options if one.count or one.chosen]
    silent = [one for one in options if facet in ALL_OF and one not in shown]
    return FacetView(
        name=facet.value,
        label=FACETS[facet],
        options=tuple(shown),
        silent=tuple(silent),
        open=bool(chosen) or facet in _OPEN,
    )


def _in_order(facet: Facet, known: frozenset[str]) -> list[str]:
    if facet is Facet.MODALITY:
        return [modality.value for modality in Modality if modality.value in known]
    if facet is Facet.SIZE:
        return [size.value for size in Size if size.value in known]
    if facet in ALL_OF:
        return sorted(known, key=lambda value: in_order(vendor_called(value)))
    return sorted(known, key=lambda value: _value_label(facet, value).lower())


def _value_label(facet: Facet, value: str) -> str:
    if facet in ALL_OF:
        vendor = vendor_called(value)
        kind = vendor.kind.value.upper() if vendor.kind else ""
        return vendor.title if not kind or vendor.title == kind else f"{vendor.title} · {kind}"
    if facet is Facet.MODALITY:
        return str(MODALITIES[Modality(value)])
    if facet is Facet.SIZE:
        return str(SIZES[Size(value)])
    if facet is Facet.TASK:
        return str(ABILITIES.get(value, value))
    return str(_("unknown")) if value == "unknown" else value


@lru_cache(maxsize=2048)
def _row(drawn: tuple[str, frozenset[str], str], key: str, *, chosen: bool) -> SafeString:
    """One row of the table, drawn once for each revision, set of engines and language."""
    entry = selectors.shelf_at(drawn[0]).entries[key]
    context = {
        "entry": entry,
        "chosen": chosen,
        "modality": MODALITIES[entry.modality],
        "squares": [(label, fits(entry, task)) for task, label in TASKS.items()],
    }
    return render_to_string("registry/catalog_row.html", context)


def fits(entry: Entry, task: CatalogTask) -> list[Fit]:
    """For each vendor that a source names, what the engines that are rendered here for it can do."""
    names = {cell.vendor for cell in entry.claims(task)}
    found = sorted((vendor_called(name) for name in names), key=in_order)
    kinds = [vendor.kind for vendor in found]
    return [
        _fit(entry, task, vendor, alone=bool(vendor.kind) and kinds.count(vendor.kind) == 1)
        for vendor in found
    ]


def _fit(entry: Entry, task: CatalogTask, vendor: Vendor, *, alone: bool) -> Fit:
    every = entry.claims(task, vendor=vendor.name)
    ours = [
        claim
        for claim in every
        if renders(entry, task=task, vendor=vendor.name, engine=claim.engine)
    ]
    status = best(claim.status for claim in ours)
    anywhere = best(claim.status for claim in every)
    elsewhere = not ours and anywhere.rank < Support.UNKNOWN.rank
    said = anywhere if elsewhere else status
    named = [engine_title(claim.engine) for claim in (ours or every) if claim.status is said]
    return Fit(
        chips=vendor.kind.value.upper() if alone and vendor.kind else vendor.title,
        look="elsewhere" if elsewhere else look(status),
        said_by=f"{vendor.title}: {str(_(', ')).join(named)}",
    )
