"""The catalog: what models there are in the world, where they run, and what we have of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _

from apps.accounts.web.requests import AuthenticatedRequest
from apps.models import selectors as registry
from apps.models.models import ModelVersion
from apps.models.selectors import catalog as selectors
from apps.models.selectors import sizing
from apps.models.selectors.catalog_matrix import Claim, MatrixRow, matrix
from apps.models.web.catalog_facts import compared, facts_of
from apps.models.web.catalog_listing import MOST_COMPARED, Fit, drawn_list, fits
from apps.models.web.catalog_steps import Step, import_href, steps
from apps.models.web.catalog_words import CAVEATS, FIELDS, TASKS, look
from apps.models.web.tabs import models_tabs
from controlplane.domain.catalog import CatalogTask, Entry, Modality
from controlplane.web.pages import is_fragment

#: Of our versions of an entry, the newest that its page shows.
_MOST_VERSIONS = 20


@login_required
def catalog(request: AuthenticatedRequest) -> HttpResponse:
    """``?q=``, one parameter for each facet, ``?sort=``, ``?page=`` and ``?ids=`` to compare."""
    drawn = drawn_list(request)
    if is_fragment(request):
        return HttpResponse(drawn.html)
    context = {"listing": drawn.listing, "found": drawn.html, "tabs": models_tabs("catalog")}
    return render(request, "registry/catalog.html", context)


@dataclass(frozen=True, slots=True, kw_only=True)
class Square:
    """One square of the matrix, with the keys of its looks."""

    label: str
    claims: tuple[tuple[str, Claim, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnRow:
    row: MatrixRow
    squares: tuple[Square, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OurVersion:
    """A version of ours, and how its own configuration differs from the catalog."""

    version: ModelVersion
    #: ``(field in words, what its config says, what the catalog says)``.
    contradictions: tuple[tuple[str, Any, Any], ...]
    problems: tuple[str, ...]


@login_required
def entry(request: AuthenticatedRequest, key: str) -> HttpResponse:
    """One model: its facts, the matrix, its memory, our versions."""
    found = selectors.catalog_entry(key)
    if found is None:
        raise Http404(f"the catalog has no model called {key!r}")
    one, withdrawn = found
    visible = registry.model_versions_visible(request.user).filter(catalog_model__key=key)
    versions = list(visible[:_MOST_VERSIONS])
    rows = matrix(one)
    buttons = steps(one, versions=versions, user=request.user)
    context = {
        "entry": one,
        "withdrawn": withdrawn,
        "facts": facts_of(one),
        "tasks": TASKS,
        "rows": [_drawn(row) for row in rows if row.claimed],
        "silent": [row.vendor for row in rows if not row.claimed],
        "sources": _sources(one),
        "steps": buttons,
        "reasons": _reasons(buttons),
        **_memory(one),
        "import_href": import_href(one),
        "versions": [_ours(version, one) for version in versions],
    }
    return render(request, "registry/catalog_entry.html", context)


#: Kinds of models that write text, which is what can be sized.
_WRITES = frozenset({Modality.LLM, Modality.VLM})


def _memory(one: Entry) -> dict[str, str]:
    """Where its chart and its calculation are, or why its memory cannot be computed."""
    if one.modality not in _WRITES:
        return {"unsized": _("only models that write text are calculated.")}
    try:
        sizing.subject_of_entry(one.key)
    except sizing.SizingRefused as refusal:
        return {"unsized": " ".join(finding.message for finding in refusal.findings)}
    query = urlencode({"model": f"catalog:{one.key}"})
    return {
        "chart_href": f"{reverse('sizing-curve')}?{query}",
        "sizing_href": f"{reverse('sizing')}?{query}",
    }


def _reasons(buttons: Sequence[Step]) -> list[tuple[str, str]]:
    """``(reason, buttons that it holds for)``, each reason once."""
    told: dict[str, list[str]] = {}
    for button in buttons:
        if button.reason:
            told.setdefault(button.reason, []).append(str(button.label))
    return [(reason, str(_(", ")).join(labels)) for reason, labels in told.items()]


def _drawn(row: MatrixRow) -> DrawnRow:
    return DrawnRow(
        row=row,
        squares=tuple(
            Square(
                label=str(label),
                claims=tuple(
                    (
                        look(claim.status),
                        claim,
                        str(CAVEATS[claim.caveat]) if claim.caveat else "",
                    )
                    for claim in row.squares[task]
                ),
            )
            for task, label in TASKS.items()
        ),
    )


def _sources(one: Entry) -> list[tuple[str, str]]:
    """``(key, title)`` of everything that the entry or one of its cells rests on."""
    keys = {*one.evidence, *(key for cell in one.cells for key in cell.evidence)}
    known = selectors.sources()
    return [(key, known[key].title if key in known else key) for key in sorted(keys)]


def _ours(version: ModelVersion, one: Entry) -> OurVersion:
    found = selectors.differences_of(version, entry=one)
    return OurVersion(
        version=version,
        contradictions=tuple(
            (str(FIELDS.get(each.field, each.field)), each.config, each.catalog)
            for each in found.contradictions
        ),
        problems=found.problems,
    )


def catalog_part(version: ModelVersion) -> dict[str, Any]:
    """For the page of a version: the entry it is of, and where its configuration says something else."""
    if version.catalog_model is None:
        return {}
    found = selectors.catalog_entry(version.catalog_model.key)
    if found is None:
        return {}
    return {"catalog_entry": found[0], "catalog_says": _ours(version, found[0])}


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedTask:
    label: str
    columns: tuple[list[Fit], ...]


@login_required
def compare(request: AuthenticatedRequest) -> HttpResponse:
    """``?ids=`` names up to four entries, parted by commas or given several times."""
    asked = [key for given in request.GET.getlist("ids") for key in given.split(",") if key]
    known = selectors.shelf().entries
    keys = list(dict.fromkeys(asked))
    entries = [known[key] for key in keys if key in known][:MOST_COMPARED]
    context = {
        "entries": entries,
        "facts": compared(entries) if entries else [],
        "tasks": _compared_tasks(entries),
        "ignored": _left_out(keys, known),
        "most": MOST_COMPARED,
    }
    return render(request, "registry/catalog_compare.html", context)


def _compared_tasks(entries: Sequence[Entry]) -> list[ComparedTask]:
    return [
        ComparedTask(label=str(TASKS[task]), columns=tuple(fits(one, task) for one in entries))
        for task in CatalogTask
    ]


def _left_out(keys: Sequence[str], known: Any) -> list[str]:
    unknown = [
        _("The catalog has no model called “%(key)s”.") % {"key": key[:80]}
        for key in keys
        if key not in known
    ]
    more = [known[key].title for key in keys if key in known][MOST_COMPARED:]
    if more:
        unknown.append(
            _("Up to %(most)s models stand side by side; left out: %(names)s.")
            % {"most": MOST_COMPARED, "names": str(_(", ")).join(more)}
        )
    return unknown
