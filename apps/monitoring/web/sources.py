"""Pages of where figures come from: sources that are read, and how each does."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST

from apps.accounts.web.requests import AuthenticatedRequest
from apps.fleet.selectors import require_operator
from apps.monitoring.models import Source
from apps.monitoring.selectors import fleet_figures as figures
from apps.monitoring.selectors.agents import Agents, agents_heard
from apps.monitoring.selectors.sources import PUSH, sources_visible
from apps.monitoring.services import sources as services
from apps.monitoring.services.sources import SourceRefused, Trial
from apps.monitoring.web.sources_forms import (
    EXPORTER,
    KIND_WORDS,
    NewSource,
    form_of,
    kinds_offered,
)
from controlplane.ports.telemetry import exporter_name
from controlplane.web.message_translation import translate_message
from controlplane.web.pages import Tab, row_action, show

#: Of many exporters a list shows so many addresses, and how many more there are.
ADDRESSES_SHOWN = 2


def tabs_of(current: str, *, sources: int, agents: Agents) -> list[Tab]:
    """What is read, and who sends."""
    parts = (
        ("sources", gettext_lazy("Sources"), sources),
        ("agents", gettext_lazy("Agents"), agents.nodes),
    )
    return [
        Tab(label=label, href=reverse(name), current=name == current, count=count)
        for name, label, count in parts
    ]


@login_required
def sources(request: AuthenticatedRequest) -> HttpResponse:
    """Every source, how it does and what of its last reading was refused; looks again by itself."""
    require_operator(request.user)
    at = timezone.now()
    rows = [_row(one) for one in figures.sources_heard(at=at)]
    agents = agents_heard(at=at)
    context = {
        "rows": rows,
        "agents": agents,
        "tabs": tabs_of("sources", sources=len(rows), agents=agents),
        "kinds": kinds_offered(),
    }
    return show(request, "monitoring/sources.html", context, fragment="now", changing=bool(rows))


def _row(heard: figures.Heard) -> dict[str, Any]:
    source = heard.source
    addresses = _addresses(source)
    return {
        "source": source,
        "state": heard.how.value,
        "kind": KIND_WORDS.get(source.kind, source.kind),
        "measured": heard.measured,
        "addresses": addresses[:ADDRESSES_SHOWN],
        "addresses_more": max(0, len(addresses) - ADDRESSES_SHOWN),
    }


def _addresses(source: Source) -> list[str]:
    """Where it is read; nothing for one that is pushed to."""
    if source.kind == EXPORTER:
        return [one["url"] for one in source.options.get("targets", ())]
    return [source.options["url"]] if "url" in source.options else []


def _found(request: AuthenticatedRequest, uid: str) -> Source:
    require_operator(request.user)
    return get_object_or_404(sources_visible(request.user), uid=uid)


@login_required
def source(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    """One source: what is read where, and why something of it was not kept."""
    return _page(request, _found(request, uid))


def _page(
    request: AuthenticatedRequest, found: Source, *, trial: Trial | None = None, refusal: str = ""
) -> HttpResponse:
    at = timezone.now()
    context = {
        **_row(figures.source_heard(found, at=at)),
        "pushes": found.kind == PUSH,
        "agents": agents_heard(at=at, cluster=found.cluster) if found.kind == PUSH else None,
        "targets": _targets(found),
        "settings": _settings(found),
        "silent": sorted(found.silent.items()),
        "trial": trial,
        "refusal": refusal,
    }
    status = 422 if refusal else 200
    return render(request, "monitoring/source.html", context, status=status)


def _targets(source: Source) -> list[dict[str, str | None]]:
    """Every exporter with its node, and why it did not answer the last time; None where that is not known."""
    if source.kind != EXPORTER:
        return []
    found: list[dict[str, str | None]] = []
    for one in source.options.get("targets", ()):
        url, node = one["url"], one.get("node", "")
        silent = services.part_silent(source, exporter_name(url=url, node=node))
        found.append({"url": url, "node": node, "silent": silent})
    return found


def _settings(source: Source) -> list[tuple[str, Any]]:
    """What else it was told, by the names that REST has for it."""
    own = {"url", "vendor"} | ({"targets"} if source.kind == EXPORTER else set())
    return sorted((name, value) for name, value in source.options.items() if name not in own)


@sensitive_post_parameters("token")
@login_required
def source_new(request: AuthenticatedRequest) -> HttpResponse:
    """A form for the kind that ``?kind=`` names. Nothing is called yet: the source's page tries it."""
    require_operator(request.user)
    kinds = kinds_offered()
    asked = request.GET.get("kind", "")
    kind = asked if asked in kinds else (kinds[0] if kinds else "")
    bound = request.method == "POST" and bool(kind)
    data = request.POST if bound else None
    which, form = NewSource(data), form_of(kind)(data)
    # Both, so that everything that is wrong is said at once.
    if bound and all([which.is_valid(), form.is_valid()]):
        try:
            made = services.source_create(
                actor=request.user,
                kind=kind,
                options=form.chosen_options,
                every=form.cleaned_data["every"],
                token=form.chosen_token or "",
                **which.cleaned_data,
            )
        except SourceRefused as refusal:
            if refusal.field in which.fields:
                which.add_error(refusal.field, translate_message(str(refusal)))
            else:
                form.refused(refusal.field, translate_message(str(refusal)))
        else:
            messages.success(request, _("The source was made; try it to see what it tells."))
            return redirect("source", made.uid)
    here = reverse("source-new")
    context = {
        "which": which,
        "form": form,
        "kinds": [
            Tab(label=KIND_WORDS[one], href=f"{here}?kind={one}", current=one == kind)
            for one in kinds
        ],
    }
    return render(request, "monitoring/source_edit.html", context, status=422 if bound else 200)


@sensitive_post_parameters("token")
@login_required
def source_change(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    found = _found(request, uid)
    bound = request.method == "POST"
    form = form_of(found.kind)(request.POST if bound else None, source=found)
    if bound and form.is_valid():
        try:
            services.source_change(
                source=found,
                actor=request.user,
                options=form.chosen_options if form.options else None,
                every=form.cleaned_data["every"],
                token=form.chosen_token,
            )
        except SourceRefused as refusal:
            form.refused(refusal.field, translate_message(str(refusal)))
        else:
            messages.success(request, _("The source was changed."))
            return redirect("source", found.uid)
    context = {"form": form, "source": found}
    return render(request, "monitoring/source_edit.html", context, status=422 if bound else 200)


@login_required
@require_POST
def source_try(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    """The answer tells what was read; nothing of it is kept."""
    found = _found(request, uid)
    try:
        trial = services.source_try(source=found, actor=request.user)
    except SourceRefused as refusal:
        return _page(request, found, refusal=translate_message(str(refusal)))
    return _page(request, found, trial=trial)


_act = row_action(load=_found, page="source", refusals=(SourceRefused,))


@_act
def source_pause(request: AuthenticatedRequest, found: Source) -> str:
    services.source_change(source=found, actor=request.user, enabled=False)
    return _("The source is paused: its cards soon count as not measured.")


@_act
def source_resume(request: AuthenticatedRequest, found: Source) -> str:
    services.source_change(source=found, actor=request.user, enabled=True)
    return _("The source is read again.")


@login_required
@require_POST
def source_delete(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    found = _found(request, uid)
    services.source_delete(source=found, actor=request.user, at=timezone.now())
    messages.success(request, _("The source %(name)s was deleted.") % {"name": found.name})
    return redirect("sources")
