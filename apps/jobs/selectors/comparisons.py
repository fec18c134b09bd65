"""Several runs beside each other: what was asked differently, and what came out."""

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
from apps.jobs.selectors.utilization import scaling_of, utilization_of
from apps.models.models import Evaluation, ModelVersion
from controlplane.domain.claims import GangShape
from controlplane.domain.jobs import JobKind

#: More lines than that nobody tells apart.
MOST_COMPARED = 5
#: Runs that are offered for a comparison.
MOST_OFFERED = 20
#: Figures of which less is better; of the others, more.
_LESS_IS_BETTER = ("loss", "perplexity", "duration")
#: Of which neither is.
_NEITHER = ("steps", "rows")
#: Shares by which figures differ that say nothing of the runs.
_ALIKE = 0.005


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One row of what was asked."""

    name: str
    #: One for each run; None where it does not apply.
    values: tuple[Any, ...]

    @property
    def differs(self) -> bool:
        return any(value != self.values[0] for value in self.values[1:])


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One row of what came out; durations are in seconds."""

    name: str
    values: tuple[float | None, ...]

    @property
    def best(self) -> frozenset[int]:
        """Places of the best values; empty where nothing can be told apart."""
        known = [value for value in self.values if value is not None]
        if len(known) < 2 or self.name in _NEITHER or math.isclose(*_ends(known), rel_tol=_ALIKE):
            return frozenset()
        less = any(word in self.name for word in _LESS_IS_BETTER)
        wanted = min(known) if less else max(known)
        return frozenset(
            place
            for place, value in enumerate(self.values)
            if value is not None and math.isclose(value, wanted, rel_tol=_ALIKE)
        )


def jobs_chosen(user: accounts.Person, uids: Sequence[str]) -> list[Job]:
    """Those of the uids that they may see, in the order of the uids."""
    found = {job.uid: job for job in jobs_visible(user).filter(uid__in=uids)}
    return [found[uid] for uid in uids if uid in found]


def comparable(user: accounts.Person, jobs: Sequence[Job]) -> QuerySet[Job]:
    """Other runs of the same kind on the same dataset or model, the newest first."""
    alike = Q()
    for job in jobs:
        same = Q(model_version__line=job.model_version.line_id if job.model_version else None)
        if job.dataset_version is not None:
            same |= Q(dataset_version__dataset=job.dataset_version.dataset_id)
        alike |= Q(kind=job.kind) & same
    rows = jobs_visible(user).exclude(kind=JobKind.SCRIPT)
    if jobs:
        rows = rows.filter(alike).exclude(pk__in=[job.pk for job in jobs])
    return rows.order_by("-pk")[:MOST_OFFERED]


def parameters_of(jobs: Sequence[Job]) -> list[Parameter]:
    """Everything that was asked, what differs first."""
    columns = [_asked(job) for job in jobs]
    names = list(dict.fromkeys(name for column in columns for name in column))
    rows = [
        Parameter(name=name, values=tuple(column.get(name) for column in columns)) for name in names
    ]
    return sorted(rows, key=lambda row: not row.differs)


def _asked(job: Job) -> dict[str, Any]:
    return {
        "model": str(job.model_version) if job.model_version else None,
        "dataset": str(job.dataset_version) if job.dataset_version else None,
        "chip": " / ".join(job.chips),
        "cards": GangShape.from_json(job.shape).cards,
        "engine": job.engine,
        **_flat(job.spec),
    }


def _flat(spec: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    rows: dict[str, Any] = {}
    for name, value in spec.items():
        if isinstance(value, Mapping):
            rows |= _flat(value, f"{prefix}{name} ")
        else:
            rows[prefix + name] = ", ".join(map(str, value)) if isinstance(value, list) else value
    return rows


def outcomes_of(jobs: Sequence[Job], attempts: Mapping[int, Attempt]) -> list[Outcome]:
    """Durations, throughput and final figures; ``attempts`` is the newest of each job, by its key."""
    reported, made = _reported(attempts), _measured(jobs)
    scaling = scaling_of(jobs, attempts) or (None,) * len(jobs)
    columns = [
        _came_out(attempts.get(job.pk))
        | reported.get(job.pk, {})
        | {"utilization": _utilization(attempts.get(job.pk)), "scaling_efficiency": efficiency}
        | made.get(job.uid, {})
        for job, efficiency in zip(jobs, scaling, strict=True)
    ]
    names = list(dict.fromkeys(name for column in columns for name in column))
    rows = (
        Outcome(name=name, values=tuple(column.get(name) for column in columns)) for name in names
    )
    return [row for row in rows if any(value is not None for value in row.values)]


def _utilization(attempt: Attempt | None) -> float | None:
    found = utilization_of(attempt) if attempt is not None else None
    return None if found is None else round(found.mfu, 4)


def newest_attempts(jobs: Sequence[Job]) -> dict[int, Attempt]:
    """The newest attempt of each job, by the job's key."""
    rows = (
        Attempt.objects.filter(job__in=jobs)
        .select_related("job__model_version__artifact", "job__dataset_version")
        .order_by("job_id", "number")
    )
    return {attempt.job_id: attempt for attempt in rows}


#: Of the newest point, those that stand for the end of the run.
_FINAL = ("loss", "eval_loss", "step")


def _came_out(attempt: Attempt | None) -> dict[str, float | None]:
    if attempt is None:
        return {}
    column: dict[str, float | None] = {"duration": None}
    if attempt.started_at is not None and attempt.ended_at is not None:
        column["duration"] = (attempt.ended_at - attempt.started_at).total_seconds()
    for name in _FINAL:
        value = attempt.progress.get(name)
        column[f"final_{name}" if name != "step" else "steps"] = _number(value)
    return column


def _reported(attempts: Mapping[int, Attempt]) -> dict[int, dict[str, float | None]]:
    """Means and bests over all points, by the job's key."""
    rows = (
        Attempt.objects.filter(pk__in=[attempt.pk for attempt in attempts.values()])
        .annotate(
            speed=Avg(_figure("tokens_per_second")),
            lowest=Min(_figure("eval_loss")),
        )
        .values_list("job_id", "speed", "lowest")
    )
    return {
        job: {"best_eval_loss": lowest, "mean_tokens_per_second": speed}
        for job, speed, lowest in rows
    }


def _figure(name: str) -> Cast:
    return Cast(KeyTextTransform(name, "points__values"), FloatField())


def _measured(jobs: Sequence[Job]) -> dict[str, dict[str, float | None]]:
    """What was evaluated: by the run itself, or of the version that it made, on its own dataset."""
    uids = [job.uid for job in jobs]
    datasets = {job.dataset_version_id for job in jobs}
    made = dict(ModelVersion.objects.filter(job_uid__in=uids).values_list("pk", "job_uid"))
    rows = Evaluation.objects.filter(
        Q(job_uid__in=uids) | Q(model_version__in=made), dataset_version__in=datasets
    ).order_by("id")
    columns: dict[str, dict[str, float | None]] = {}
    for row in rows:
        figures = {name: _number(value) for name, value in row.metrics.items()}
        for uid in {row.job_uid, made.get(row.model_version_id, "")} & set(uids):
            columns.setdefault(uid, {}).update(figures)
    return columns


def _ends(values: Sequence[float]) -> tuple[float, float]:
    return min(values), max(values)


def _number(value: Any) -> float | None:
    right = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if right else None
