"""What a few letters find, across everything that somebody may see."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Q

from apps.accounts import selectors as accounts
from apps.jobs import selectors as jobs
from apps.jobs.models import Job
from apps.models import selectors as registry
from apps.models.models import DatasetVersion, ModelLine
from apps.serving import selectors as serving
from apps.serving.models import Deployment

#: Rows of one kind; whoever needs more types one letter more.
MOST_HITS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Finds:
    """The newest of each kind first, at most ``MOST_HITS`` of each."""

    jobs: list[Job]
    models: list[ModelLine]
    #: The newest matching version of each dataset.
    datasets: list[DatasetVersion]
    deployments: list[Deployment]


def finds(user: accounts.RequestUser, *, text: str) -> Finds:
    """Whose name contains the text, or whose uid begins with it. Costs one query a kind."""

    def named(field: str = "name") -> Q:
        return Q(**{f"{field}__icontains": text}) | Q(uid__startswith=text.lower())

    versions = registry.dataset_versions_visible(user).filter(named("dataset__name"))
    newest = versions.order_by("-dataset_id", "-number").distinct("dataset_id")
    return Finds(
        jobs=list(jobs.jobs_visible(user).filter(named()).order_by("-pk")[:MOST_HITS]),
        models=list(registry.model_lines_visible(user).filter(named()).order_by("-pk")[:MOST_HITS]),
        datasets=list(newest[:MOST_HITS]),
        deployments=list(
            serving.deployments_visible(user).filter(named()).order_by("-pk")[:MOST_HITS]
        ),
    )
