"""Pages of the catalog: the list, one entry with its compatibility matrix, and the comparison of entries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from apps.accounts import selectors as accounts
from apps.accounts.web.http_requests import AuthenticatedRequest
from apps.models import selectors as registry
from apps.models.models import ModelVersion
from apps.models.selectors import catalog as selectors
from apps.models.selectors import sizing
from apps.models.selectors.catalog import MatrixRow, compatibility_matrix
from apps.models.web.catalog_labels import (
    CAVEATS,
    FIELDS,
    TASKS,
    catalog_facts,
    compared_facts,
    support_display_state,
)
from apps.models.web.catalog_list import (
    MAX_COMPARED,
    render_catalog_list,
    vendor_support,
)
from apps.models.web.model_version_actions import models_tabs
from controlplane.domain.catalog import CatalogEntry, CatalogTask, Modality
from controlplane.domain.common.permissions import Permission, roles_grant
from controlplane.domain.registry.versions import ModelState
from controlplane.web.pages import is_htmx_fragment_request

#: Newest registered versions that an entry's page shows.
_MAX_VERSIONS = 20


@login_required
def catalog(request: AuthenticatedRequest) -> HttpResponse:
    """``?q=``, one parameter per facet, ``?sort=``, ``?page=`` and ``?ids=`` for the comparison."""
    rendered = render_catalog_list(request)
    if is_htmx_fragment_request(request):
        return HttpResponse(rendered.html)
    context = {"listing": rendered.listing, "found": rendered.html, "tabs": models_tabs("catalog")}
    return render(request, "registry/catalog.html", context)


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogVersionDisplay:
    """A registered version, and how its configuration differs from the catalog."""

    version: ModelVersion
    #: ``(field label, value in config.json, value in the catalog)``.
    contradictions: tuple[tuple[str, Any, Any], ...]
    problems: tuple[str, ...]


@login_required
def catalog_entry_page(request: AuthenticatedRequest, key: str) -> HttpResponse:
    """One catalog entry: facts, matrix, memory, registered versions."""
    found = selectors.catalog_entry(key)
    if found is None:
        raise Http404(f"the catalog has no model called {key!r}")
    one, withdrawn = found
    visible = registry.model_versions_visible(request.user).filter(catalog_model__key=key)
    versions = list(visible[:_MAX_VERSIONS])
    rows = compatibility_matrix(one)
    buttons = catalog_actions(one, versions=versions, user=request.user)
    context = {
        "entry": one,
        "withdrawn": withdrawn,
        "facts": catalog_facts(one),
        "tasks": TASKS,
        "rows": [_matrix_row_context(row) for row in rows if row.has_claims],
        "unattested": [row.vendor for row in rows if not row.has_claims],
        "sources": _entry_sources(one),
        "catalog_actions": buttons,
        "reasons": _disabled_reasons(buttons),
        **_memory_links(one),
        "catalog_import_url": catalog_import_url(one),
        "versions": [_version_view(version, one) for version in versions],
    }
    return render(request, "registry/catalog_entry.html", context)


#: Modalities whose memory can be estimated: text generation.
_SIZED_MODALITIES = frozenset({Modality.LLM, Modality.VLM})


def _memory_links(one: CatalogEntry) -> dict[str, str]:
    """URLs of its memory chart and calculation, or why its memory cannot be estimated."""
    if one.modality not in _SIZED_MODALITIES:
        return {"unsized": _("only text generation models are supported.")}
    try:
        sizing.sizing_subject_of_entry(one.key)
    except sizing.SizingRefused as refusal:
        return {"unsized": " ".join(finding.message for finding in refusal.findings)}
    query = urlencode({"model": f"catalog:{one.key}"})
    return {
        "chart_href": f"{reverse('sizing-curve')}?{query}",
        "sizing_href": f"{reverse('sizing')}?{query}",
    }


def _disabled_reasons(buttons: Sequence[CatalogAction]) -> list[tuple[str, str]]:
    """``(reason, labels of the disabled buttons)``, each reason once."""
    labels_by_reason: dict[str, list[str]] = {}
    for button in buttons:
        if button.reason:
            labels_by_reason.setdefault(button.reason, []).append(str(button.label))
    return [(reason, str(_(", ")).join(labels)) for reason, labels in labels_by_reason.items()]


def _matrix_row_context(row: MatrixRow) -> dict[str, Any]:
    """The row, and for each task its label and its claims, each with display state and caveat."""
    return {
        "row": row,
        "cells": [
            {
                "label": label,
                "claims": [
                    (
                        support_display_state(claim.status),
                        claim,
                        CAVEATS[claim.caveat] if claim.caveat else "",
                    )
                    for claim in row.cells[task]
                ],
            }
            for task, label in TASKS.items()
        ],
    }


def _entry_sources(one: CatalogEntry) -> list[tuple[str, str]]:
    """``(key, title)`` of every source of the entry and its cells."""
    keys = {*one.evidence, *(key for cell in one.cells for key in cell.evidence)}
    known = selectors.catalog_sources()
    return [(key, known[key].title if key in known else key) for key in sorted(keys)]


def _version_view(version: ModelVersion, one: CatalogEntry) -> CatalogVersionDisplay:
    found = selectors.catalog_differences(version, entry=one)
    return CatalogVersionDisplay(
        version=version,
        contradictions=tuple(
            (str(FIELDS.get(each.field, each.field)), each.config, each.catalog)
            for each in found.contradictions
        ),
        problems=found.problems,
    )


def catalog_context(version: ModelVersion) -> dict[str, Any]:
    """Context for a version's page: its catalog entry and contradictions with its configuration."""
    if version.catalog_model is None:
        return {}
    found = selectors.catalog_entry(version.catalog_model.key)
    if found is None:
        return {}
    return {"catalog_entry": found[0], "catalog_says": _version_view(version, found[0])}


@login_required
def catalog_comparison_page(request: AuthenticatedRequest) -> HttpResponse:
    """``?ids=`` names up to four entries, separated by commas or repeated."""
    requested = [key for given in request.GET.getlist("ids") for key in given.split(",") if key]
    known = selectors.catalog_snapshot().entries
    keys = list(dict.fromkeys(requested))
    entries = [known[key] for key in keys if key in known][:MAX_COMPARED]
    context = {
        "entries": entries,
        "facts": compared_facts(entries) if entries else [],
        "tasks": [
            {"label": label, "columns": [vendor_support(one, task) for one in entries]}
            for task, label in TASKS.items()
        ],
        "ignored": _ignored_keys(keys, known),
        "most": MAX_COMPARED,
    }
    return render(request, "registry/catalog_compare.html", context)


def _ignored_keys(keys: Sequence[str], known: Any) -> list[str]:
    unknown = [
        _("The catalog has no model “%(key)s”.") % {"key": key[:80]}
        for key in keys
        if key not in known
    ]
    more = [known[key].title for key in keys if key in known][MAX_COMPARED:]
    if more:
        unknown.append(
            _("At most %(most)s models can be compared. Not shown: %(names)s.")
            % {"most": MAX_COMPARED, "names": str(_(", ")).join(more)}
        )
    return unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogAction:
    """A button of an entry's page."""

    label: str | Promise
    icon: str
    #: Empty if the action is disabled.
    href: str
    #: Why it is disabled; empty if it is enabled.
    reason: str


_LABELS: Mapping[CatalogTask, tuple[str | Promise, str, str, Permission]] = {
    CatalogTask.TRAIN: (lazy("Fine-tune"), "adjustments", "job-new-finetune", Permission.RUN),
    CatalogTask.QUANTIZE: (lazy("Quantize"), "scale", "job-new-quantize", Permission.RUN),
    CatalogTask.SERVE: (lazy("Deploy"), "rocket", "deployment-new", Permission.DEPLOY),
}


def catalog_actions(
    entry: CatalogEntry, *, versions: Sequence[ModelVersion], user: accounts.RequestUser
) -> list[CatalogAction]:
    """Fine-tune, quantize, deploy. ``versions`` are those of the entry that the user may see, newest first."""
    held = accounts.roles_by_team(user)
    granted = {
        permission
        for permission in Permission
        if any(roles_grant(roles, permission) for roles in held.values())
    }
    return [_catalog_action(entry, task, versions=versions, granted=granted) for task in _LABELS]


def catalog_import_url(entry: CatalogEntry) -> str:
    """Import page for its weights: from its hub repository, or else from a folder."""
    if entry.hf_repo:
        hub, repository = "huggingface", entry.hf_repo
    elif entry.modelscope_id:
        hub, repository = "modelscope", entry.modelscope_id
    else:
        return reverse("model-import")
    return f"{reverse('model-fetch')}?{urlencode({'hub': hub, 'repository': repository})}"


def _catalog_action(
    entry: CatalogEntry,
    task: CatalogTask,
    *,
    versions: Sequence[ModelVersion],
    granted: set[Permission],
) -> CatalogAction:
    label, icon, url_name, permission = _LABELS[task]
    ready = [version for version in versions if _is_usable_for(version, task)]
    reason = _missing_engine_reason(entry, task)
    if not reason and permission not in granted:
        reason = _("Your roles are read-only. A team administrator can change them.")
    if not reason and not ready:
        reason = _missing_weights_reason(versions, task)
    href = "" if reason else f"{reverse(url_name)}?{urlencode({'model': ready[0].uid})}"
    return CatalogAction(label=label, icon=icon, href=href, reason=reason)


def _is_usable_for(version: ModelVersion, task: CatalogTask) -> bool:
    """Whether its files are stored; quantized versions can only be deployed."""
    plain = not version.scheme or task is CatalogTask.SERVE
    return version.state == ModelState.READY and plain


def _missing_weights_reason(versions: Sequence[ModelVersion], task: CatalogTask) -> str:
    if any(version.state == ModelState.IMPORTING for version in versions):
        return _("The weights are being imported.")
    if any(version.state == ModelState.READY for version in versions):
        return _("All registered versions are quantized. Import the unquantized weights first.")
    return _("Import the weights first.")


def _missing_engine_reason(entry: CatalogEntry, task: CatalogTask) -> str:
    """Why no installed engine renders the task; empty if one does."""
    if selectors.is_task_rendered_on_any_chip(entry, task):
        return ""
    named = sorted({selectors.engine_title(cell.engine) for cell in entry.claims(task)})
    if named:
        return _(
            "Not supported by any engine plug-in. Engines named by the sources: %(named)s."
        ) % {"named": str(_(", ")).join(named)}
    return _("No known engine supports this task.")
