"""Registered models: lines with their newest version, evaluations, and the deployments that serve them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Exists, F, IntegerField, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce

from apps.accounts import selectors as accounts
from apps.jobs.selectors.job_comparison import JobMetricComparison
from apps.models import selectors as registry
from apps.models.models import ModelLine, ModelVersion
from apps.serving.models import Deployment, RouteBackend

#: Versions that one comparison shows side by side.
MAX_COMPARED_VERSIONS = 6
#: Metrics of an evaluation summary.
_SUMMARY_METRICS = 2


def model_lines_with_newest(user: accounts.RequestUser) -> QuerySet[ModelLine]:
    """Lines with ``newest_number``, ``_uid``, ``_state``, ``_at``, ``architecture``, ``parameters``,
    ``size`` (bytes) of their newest version, and ``serving``: the number of deployments that serve one of them."""
    newest = ModelVersion.objects.filter(line=OuterRef("pk")).order_by("-number")
    serving = (
        _own_route_backends(user)
        .filter(backend__revision__model_version__line=OuterRef("pk"))
        .order_by()
        .values("backend__revision__model_version__line")
        .annotate(amount=Count("route__deployment", distinct=True))
        .values("amount")
    )
    return registry.model_lines_visible(user).annotate(
        newest_number=Subquery(newest.values("number")[:1]),
        newest_uid=Subquery(newest.values("uid")[:1]),
        newest_state=Subquery(newest.values("state")[:1]),
        newest_at=Subquery(newest.values("created_at")[:1]),
        architecture=Subquery(newest.values("architecture")[:1]),
        parameters=Subquery(newest.values("parameters")[:1]),
        size=Subquery(newest.values("artifact__size")[:1]),
        serving=Coalesce(Subquery(serving, output_field=IntegerField()), 0),
    )


def versions_with_origin(user: accounts.RequestUser) -> QuerySet[ModelVersion]:
    """Visible versions with ``base_visible`` and ``dataset_visible``: their origin may be
    another team's, even where everybody may use the version itself."""
    bases = registry.model_lines_visible(user).filter(pk=OuterRef("base__line"))
    teams = accounts.teams_visible(user).filter(pk=OuterRef("dataset_version__dataset__team"))
    return registry.model_versions_visible(user).annotate(
        base_visible=Exists(bases), dataset_visible=Exists(teams)
    )


def architectures_visible(user: accounts.RequestUser) -> list[str]:
    """Names of the architectures of the visible versions, sorted."""
    found = registry.model_versions_visible(user).exclude(architecture="").order_by()
    return sorted(found.values_list("architecture", flat=True).distinct())


def _own_route_backends(user: accounts.RequestUser) -> QuerySet[RouteBackend]:
    """The backends of each visible deployment in the deployment's own route."""
    return RouteBackend.objects.filter(
        route__deployment=F("backend__revision__deployment"),
        route__deployment__deleted_at=None,
        route__deployment__team__in=accounts.teams_visible(user),
    )


def deployments_by_version(
    versions: Collection[int], *, user: accounts.RequestUser
) -> dict[int, list[Deployment]]:
    """The deployments that serve each of those versions, by the version's primary key."""
    rows = (
        _own_route_backends(user)
        .filter(backend__revision__model_version__in=versions)
        .select_related("route__deployment__team", "backend__revision")
        .order_by("route__name")
    )
    found: dict[int, list[Deployment]] = defaultdict(list)
    for row in rows:
        found[row.backend.revision.model_version_id].append(row.route.deployment)
    return dict(found)


#: Metrics that describe the evaluation, not the quality of the model.
_NOT_QUALITY = ("rows",)


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationSummary:
    """The newest evaluation of a version, in short."""

    dataset_version: str
    metrics: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionMetricComparison:
    """One metric on one split of one dataset, for several versions."""

    dataset: str
    dataset_uid: str
    split: str
    metric: str
    #: In the order of the versions; None where it was not measured.
    values: tuple[float | None, ...]

    @property
    def best(self) -> frozenset[int]:
        """Indices of the best values; empty where they hardly differ."""
        return JobMetricComparison(name=self.metric, values=self.values).best


def evaluation_summaries(
    versions: Collection[int], *, user: accounts.RequestUser
) -> Mapping[int, EvaluationSummary]:
    """Each version's newest evaluation on visible data, by the version's primary key."""
    rows = registry.evaluations_visible(user).filter(model_version__in=versions)
    return {
        row.model_version_id: EvaluationSummary(
            dataset_version=str(row.dataset_version),
            metrics=tuple(_metric_values(row.metrics)[:_SUMMARY_METRICS]),
        )
        for row in rows.order_by("id")
    }


def metric_comparisons(
    versions: Sequence[ModelVersion], *, user: accounts.RequestUser
) -> list[VersionMetricComparison]:
    """Every metric measured for at least one of the versions, with the values of all of them."""
    rows = registry.evaluations_visible(user).filter(
        model_version__in=[version.pk for version in versions]
    )
    found: dict[tuple[str, str, str, str], dict[int, float]] = defaultdict(dict)
    for row in rows.order_by("id"):
        data = row.dataset_version
        for metric, value in _metric_values(row.metrics):
            found[str(data), data.uid, row.split, metric][row.model_version_id] = value
    return [
        VersionMetricComparison(
            dataset=dataset,
            dataset_uid=uid,
            split=split,
            metric=metric,
            values=tuple(values.get(version.pk) for version in versions),
        )
        for (dataset, uid, split, metric), values in sorted(found.items())
    ]


def _metric_values(metrics: Mapping[str, Any]) -> list[tuple[str, float]]:
    return [
        (name, value)
        for name, value in metrics.items()
        if isinstance(value, int | float)
        and not isinstance(value, bool)
        and name not in _NOT_QUALITY
    ]
