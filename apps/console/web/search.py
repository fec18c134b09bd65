"""Search: one URL for the page and for the results of the palette, with the query behind both."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.decorators import login_required
from django.db.models import Q, QuerySet
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import NoReverseMatch, reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from apps.accounts import selectors as accounts
from apps.accounts.web.http_requests import AuthenticatedRequest
from apps.jobs import selectors as jobs
from apps.models import selectors as registry
from apps.models.models import DatasetVersion
from apps.serving import selectors as serving
from controlplane.web.pages import is_htmx_fragment_request

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
class SearchHit:
    label: str | Promise
    href: str
    icon: str
    #: Distinguishes objects of the same name.
    hint: str = ""
    state: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchGroup:
    label: str | Promise
    hits: list[SearchHit]


@login_required
def search(request: AuthenticatedRequest) -> HttpResponse:
    """``?q=``; without it, the pages that one can go to."""
    text = request.GET.get("q", "").replace("\0", "").strip()[:LONGEST]
    groups = [SearchGroup(label=_("Pages"), hits=list(_matching_pages(text)))]
    if text:
        groups = [*find_objects(request.user, text=text), *groups]
    context = {"text": text, "groups": [group for group in groups if group.hits]}
    part = "#results" if is_htmx_fragment_request(request) else ""
    return render(request, f"console/search.html{part}", context)


def _matching_pages(text: str) -> Iterator[SearchHit]:
    for name, label, icon in PAGES:
        if text.casefold() not in str(label).casefold():
            continue
        try:
            yield SearchHit(label=label, href=reverse(name), icon=icon)
        except NoReverseMatch:
            continue


#: Rows of one kind; a longer search text narrows the result.
MOST_HITS = 8


def find_objects(user: accounts.RequestUser, *, text: str) -> list[SearchGroup]:
    """Objects whose name contains the text, or whose uid begins with it; the newest of each kind first.

    Costs one query a kind.
    """

    def matching(rows: QuerySet[Any], field: str = "name") -> QuerySet[Any]:
        matches = Q(**{f"{field}__icontains": text}) | Q(uid__startswith=text.lower())
        return rows.filter(matches).order_by("-pk")

    versions = matching(registry.dataset_versions_visible(user), "dataset__name")
    newest = versions.order_by("-dataset_id", "-number").distinct("dataset_id")
    return [
        _object_group(_("Jobs"), matching(jobs.jobs_visible(user)), "job", "activity"),
        _object_group(
            _("Models"), matching(registry.model_lines_visible(user)), "model", "stack-2"
        ),
        _object_group(_("Datasets"), newest, "dataset-version", "database"),
        _object_group(
            _("Deployments"), matching(serving.deployments_visible(user)), "deployment", "rocket"
        ),
    ]


def _object_group(label: Promise, rows: QuerySet[Any], page: str, icon: str) -> SearchGroup:
    return SearchGroup(
        label=label,
        hits=[
            SearchHit(
                label=str(row),
                href=reverse(page, args=[row.uid]),
                icon=icon,
                hint=_team_name(row.dataset if isinstance(row, DatasetVersion) else row),
                state=getattr(row, "state", ""),
            )
            for row in rows[:MOST_HITS]
        ],
    )


def _team_name(owned: Any) -> str:
    """Empty for a model that all teams share."""
    return owned.team.name if owned.team else ""
