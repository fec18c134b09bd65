"""Search: one address for the page and for what the palette shows of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import NoReverseMatch, reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from apps.accounts.web.requests import AuthenticatedRequest
from apps.monitoring.selectors import searches
from controlplane.web.pages import is_fragment

LONGEST = 100
#: Name of the address, label, icon; addresses that do not exist are left out.
PAGES = (
    ("home", _("Home"), "home"),
    ("jobs", _("Jobs"), "activity"),
    ("job-new", _("New job"), "plus"),
    ("job-new-finetune", _("Fine-tune a model"), "adjustments"),
    ("models", _("Models"), "stack-2"),
    ("model-import", _("Register a model"), "stack-2"),
    ("datasets", _("Datasets"), "database"),
    ("dataset-new", _("Upload a dataset"), "upload"),
    ("deployments", _("Deployments"), "rocket"),
    ("playground", _("Playground"), "message"),
    ("keys", _("Keys"), "key"),
    ("fleet", _("Fleet"), "cpu"),
    ("teams", _("Teams"), "users"),
    ("storage", _("Storage"), "server-2"),
    ("notifications", _("Notifications"), "bell"),
    ("profile", _("Profile"), "user"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    label: str | Promise
    href: str
    icon: str
    #: Tells it apart from others of the same name.
    hint: str = ""
    state: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    label: str | Promise
    hits: list[Hit]


@login_required
def search(request: AuthenticatedRequest) -> HttpResponse:
    """``?q=``; without it, the pages that one can go to."""
    text = request.GET.get("q", "").replace("\0", "").strip()[:LONGEST]
    groups = [Group(label=_("Pages"), hits=list(_pages(text)))]
    if text:
        groups = [*_things(searches.finds(request.user, text=text)), *groups]
    context = {"text": text, "groups": [group for group in groups if group.hits]}
    part = "#results" if is_fragment(request) else ""
    return render(request, f"monitoring/search.html{part}", context)


def _pages(text: str) -> Iterator[Hit]:
    for name, label, icon in PAGES:
        if text.casefold() not in str(label).casefold():
            continue
        try:
            yield Hit(label=label, href=reverse(name), icon=icon)
        except NoReverseMatch:
            continue


def _things(found: searches.Finds) -> list[Group]:
    return [
        Group(
            label=_("Jobs"),
            hits=[
                Hit(
                    label=job.name,
                    href=reverse("job", args=[job.uid]),
                    icon="activity",
                    hint=job.team.name,
                    state=job.state,
                )
                for job in found.jobs
            ],
        ),
        Group(
            label=_("Models"),
            hits=[
                Hit(
                    label=line.name,
                    href=reverse("model", args=[line.uid]),
                    icon="stack-2",
                    hint=line.team.name if line.team else "",
                )
                for line in found.models
            ],
        ),
        Group(
            label=_("Datasets"),
            hits=[
                Hit(
                    label=str(version),
                    href=reverse("dataset-version", args=[version.uid]),
                    icon="database",
                    hint=version.dataset.team.name,
                )
                for version in found.datasets
            ],
        ),
        Group(
            label=_("Deployments"),
            hits=[
                Hit(
                    label=one.name,
                    href=reverse("deployment", args=[one.uid]),
                    icon="rocket",
                    hint=one.team.name,
                    state=one.state,
                )
                for one in found.deployments
            ],
        ),
    ]
