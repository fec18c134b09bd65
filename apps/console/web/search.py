"""Search: one URL for the page and for the results of the palette, with the query behind both."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from django.contrib.auth.decorators import login_required
from django.db.models import Q
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import NoReverseMatch, reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from apps.accounts import selectors as accounts
from apps.accounts.web.http_requests import AuthenticatedRequest
from apps.jobs import selectors as jobs
from apps.jobs.models import Job
from apps.models import selectors as registry
from apps.models.models import DatasetVersion, ModelLine
from apps.serving import selectors as serving
from apps.serving.models import Deployment
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
        groups = [*_object_groups(find_objects(request.user, text=text)), *groups]
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


def _object_groups(found: SearchResults) -> list[SearchGroup]:
    return [
        SearchGroup(
            label=_("Jobs"),
            hits=[
                SearchHit(
                    label=job.name,
                    href=reverse("job", args=[job.uid]),
                    icon="activity",
                    hint=job.team.name,
                    state=job.state,
                )
                for job in found.jobs
            ],
        ),
        SearchGroup(
            label=_("Models"),
            hits=[
                SearchHit(
                    label=line.name,
                    href=reverse("model", args=[line.uid]),
                    icon="stack-2",
                    hint=line.team.name if line.team else "",
                )
                for line in found.models
            ],
        ),
        SearchGroup(
            label=_("Datasets"),
            hits=[
                SearchHit(
                    label=str(version),
                    href=reverse("dataset-version", args=[version.uid]),
                    icon="database",
                    hint=version.dataset.team.name,
                )
                for version in found.datasets
            ],
        ),
        SearchGroup(
            label=_("Deployments"),
            hits=[
                SearchHit(
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


#: Rows of one kind; a longer search text narrows the result.
MOST_HITS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResults:
    """The newest of each kind first, at most ``MOST_HITS`` of each."""

    jobs: list[Job]
    models: list[ModelLine]
    #: The newest matching version of each dataset.
    datasets: list[DatasetVersion]
    deployments: list[Deployment]


def find_objects(user: accounts.RequestUser, *, text: str) -> SearchResults:
    """Whose name contains the text, or whose uid begins with it. Costs one query a kind."""

    def named(field: str = "name") -> Q:
        return Q(**{f"{field}__icontains": text}) | Q(uid__startswith=text.lower())

    versions = registry.dataset_versions_visible(user).filter(named("dataset__name"))
    newest = versions.order_by("-dataset_id", "-number").distinct("dataset_id")
    return SearchResults(
        jobs=list(jobs.jobs_visible(user).filter(named()).order_by("-pk")[:MOST_HITS]),
        models=list(registry.model_lines_visible(user).filter(named()).order_by("-pk")[:MOST_HITS]),
        datasets=list(newest[:MOST_HITS]),
        deployments=list(
            serving.deployments_visible(user).filter(named()).order_by("-pk")[:MOST_HITS]
        ),
    )
