"""Comparison of several jobs: spec values that differ, and resulting metrics."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Avg, FloatField, Min, Q, QuerySet
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast

from apps.accounts import selectors as accounts
from apps.jobs.models import Attempt, Job
from apps.jobs.selectors.jobs import jobs_visible
from apps.jobs.selectors.progress import attempt_utilization, jobs_scaling_efficiency
from apps.models.models import Evaluation, ModelVersion
from controlplane.domain.jobs.lifecycle import JobKind
from controlplane.domain.quotas.claims import GangShape

#: Lines of a chart that can still be distinguished.
MAX_COMPARED = 5
#: Jobs that are offered for a comparison.
MAX_OFFERED = 20
#: Parts of names of metrics of which lower is better; of others, higher is.
_LOWER_IS_BETTER = ("loss", "perplexity", "duration")
#: Metrics that are not ranked.
_NOT_RANKED = ("steps", "rows")
#: Relative difference up to which values count as equal.
_TIE_TOLERANCE = 0.005


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedParameter:
    """One value of the spec for each job."""

    name: str
    #: One for each job; None if it does not apply.
    values: tuple[Any, ...]

    @property
    def differs(self) -> bool:
        return any(value != self.values[0] for value in self.values[1:])


@dataclass(frozen=True, slots=True, kw_only=True)
class JobMetricComparison:
    """One resulting metric for each job; durations are in seconds."""

    name: str
    values: tuple[float | None, ...]

    @property
    def best(self) -> frozenset[int]:
        """Indices of the best values; empty if the values are equal or not ranked."""
        known = [value for value in self.values if value is not None]
        if (
            len(known) < 2
            or self.name in _NOT_RANKED
            or math.isclose(min(known), max(known), rel_tol=_TIE_TOLERANCE)
        ):
            return frozenset()
        lower_is_better = any(part in self.name for part in _LOWER_IS_BETTER)
        best = min(known) if lower_is_better else max(known)
        return frozenset(
            index
            for index, value in enumerate(self.values)
            if value is not None and math.isclose(value, best, rel_tol=_TIE_TOLERANCE)
        )


def jobs_by_uids(user: accounts.RequestUser, uids: Sequence[str]) -> list[Job]:
    """Jobs of those uids that are visible to the user, in the order of the uids."""
    found = {job.uid: job for job in jobs_visible(user).filter(uid__in=uids)}
    return [found[uid] for uid in uids if uid in found]


def comparable_jobs(user: accounts.RequestUser, jobs: Sequence[Job]) -> QuerySet[Job]:
    """Other jobs of the same kind with the same dataset or model, the newest first."""
    similar = Q()
    for job in jobs:
        same = Q(model_version__line=job.model_version.line_id if job.model_version else None)
        if job.dataset_version is not None:
            same |= Q(dataset_version__dataset=job.dataset_version.dataset_id)
        similar |= Q(kind=job.kind) & same
    rows = jobs_visible(user).exclude(kind=JobKind.SCRIPT)
    if jobs:
        rows = rows.filter(similar).exclude(pk__in=[job.pk for job in jobs])
    return rows.order_by("-pk")[:MAX_OFFERED]


def compared_parameters(jobs: Sequence[Job]) -> list[ComparedParameter]:
    """All spec values, those that differ first."""
    columns = [_spec_values(job) for job in jobs]
    names = list(dict.fromkeys(name for column in columns for name in column))
    rows = [
        ComparedParameter(name=name, values=tuple(column.get(name) for column in columns))
        for name in names
    ]
    return sorted(rows, key=lambda row: not row.differs)


def _spec_values(job: Job) -> dict[str, Any]:
    return {
        "model": str(job.model_version) if job.model_version else None,
        "dataset": str(job.dataset_version) if job.dataset_version else None,
        "chip": " / ".join(job.chips),
        "cards": GangShape.from_json(job.shape).cards,
        "engine": job.engine,
        **{
            name: ", ".join(map(str, value)) if isinstance(value, list) else value
            for name, value in flatten_spec(job.spec).items()
        },
    }


def flatten_spec(spec: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Values of the spec by name; fields of a group have its name as prefix."""
    rows: dict[str, Any] = {}
    for name, value in spec.items():
        if isinstance(value, Mapping):
            rows |= flatten_spec(value, f"{prefix}{name} ")
        else:
            rows[prefix + name] = value
    return rows


def compared_metrics(
    jobs: Sequence[Job], attempts: Mapping[int, Attempt]
) -> list[JobMetricComparison]:
    """Durations, throughput and final metrics.

    :param attempts: the newest attempt of each job, by the job's key.
    """
    reported, created = _aggregated_metrics(attempts), _evaluation_metrics(jobs)
    scaling = jobs_scaling_efficiency(jobs, attempts) or (None,) * len(jobs)
    columns = [
        _final_metrics(attempts.get(job.pk))
        | reported.get(job.pk, {})
        | {
            "utilization": _attempt_utilization(attempts.get(job.pk)),
            "scaling_efficiency": efficiency,
        }
        | created.get(job.uid, {})
        for job, efficiency in zip(jobs, scaling, strict=True)
    ]
    names = list(dict.fromkeys(name for column in columns for name in column))
    rows = (
        JobMetricComparison(name=name, values=tuple(column.get(name) for column in columns))
        for name in names
    )
    return [row for row in rows if any(value is not None for value in row.values)]


def _attempt_utilization(attempt: Attempt | None) -> float | None:
    found = attempt_utilization(attempt) if attempt is not None else None
    return None if found is None else round(found.mfu, 4)


def latest_attempts(jobs: Sequence[Job]) -> dict[int, Attempt]:
    """The newest attempt of each job, by the job's key."""
    rows = (
        Attempt.objects.filter(job__in=jobs)
        .select_related("job__model_version__artifact", "job__dataset_version")
        .order_by("job_id", "number")
    )
    return {attempt.job_id: attempt for attempt in rows}


#: Metrics of the newest point that describe the end of the run.
_FINAL = ("loss", "eval_loss", "step")


def _final_metrics(attempt: Attempt | None) -> dict[str, float | None]:
    if attempt is None:
        return {}
    column: dict[str, float | None] = {"duration": None}
    if attempt.started_at is not None and attempt.ended_at is not None:
        column["duration"] = (attempt.ended_at - attempt.started_at).total_seconds()
    for name in _FINAL:
        value = attempt.progress.get(name)
        column[f"final_{name}" if name != "step" else "steps"] = _parse_number(value)
    return column


def _aggregated_metrics(attempts: Mapping[int, Attempt]) -> dict[int, dict[str, float | None]]:
    """Mean throughput and lowest validation loss over all points, by the job's key."""
    rows = (
        Attempt.objects.filter(pk__in=[attempt.pk for attempt in attempts.values()])
        .annotate(
            speed=Avg(_progress_metric_expression("tokens_per_second")),
            lowest=Min(_progress_metric_expression("eval_loss")),
        )
        .values_list("job_id", "speed", "lowest")
    )
    return {
        job: {"best_eval_loss": lowest, "mean_tokens_per_second": speed}
        for job, speed, lowest in rows
    }


def _progress_metric_expression(name: str) -> Cast:
    return Cast(KeyTextTransform(name, "points__values"), FloatField())


def _evaluation_metrics(jobs: Sequence[Job]) -> dict[str, dict[str, float | None]]:
    """Evaluation metrics by the job's uid: of the job itself, or of the version it created, on its own dataset."""
    uids = [job.uid for job in jobs]
    datasets = {job.dataset_version_id for job in jobs}
    created = dict(ModelVersion.objects.filter(job_uid__in=uids).values_list("pk", "job_uid"))
    rows = Evaluation.objects.filter(
        Q(job_uid__in=uids) | Q(model_version__in=created), dataset_version__in=datasets
    ).order_by("id")
    columns: dict[str, dict[str, float | None]] = {}
    for row in rows:
        metrics = {name: _parse_number(value) for name, value in row.metrics.items()}
        for uid in {row.job_uid, created.get(row.model_version_id, "")} & set(uids):
            columns.setdefault(uid, {}).update(metrics)
    return columns


def _parse_number(value: Any) -> float | None:
    right = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if right else None
