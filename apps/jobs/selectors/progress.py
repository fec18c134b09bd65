"""Progress of attempts: reported metrics by step, time left, utilization and scaling efficiency.

A retry continues from a checkpoint and so repeats some steps. A point is therefore identified by its attempt and
its step: a client that follows a job requests the points after the last pair that it has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, F, Min, Q, QuerySet
from django.db.models.expressions import Window
from django.db.models.functions import Mod, RowNumber

from apps.jobs.models import Attempt, Job, ProgressPoint
from apps.models.selectors.sizing import architecture_of
from controlplane.domain.architectures import ConfigRefused
from controlplane.domain.common.accelerators import Chip, ChipKind, Dtype
from controlplane.domain.jobs.lifecycle import JobKind
from controlplane.domain.quotas.claims import GangShape
from controlplane.domain.sizing import adapter_parameters
from controlplane.domain.sizing.training_performance import (
    ClusterThroughput,
    ModelFlopsUtilization,
    model_flops_utilization,
    scaling_efficiency,
    training_operations,
)
from controlplane.ports import adapter_registry as ports

#: Points of one attempt in a chart; more would share pixels.
MAX_POINTS = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptCurve:
    """The points of one attempt by step, evenly thinned out."""

    attempt: Attempt
    points: list[ProgressPoint] = field(default_factory=list)


def job_curve_points(job: Job, *, after: int = -1) -> list[dict[str, Any]]:
    """Points of all attempts with a step greater than ``after``, by step; a later attempt takes precedence."""
    by_step: dict[int, dict[str, Any]] = {}
    rows = (
        job.attempts.filter(points__step__gt=after)
        .order_by("number", "points__step")
        .values_list("points__step", "points__values")
    )
    for step, values in rows:
        by_step[step] = {"step": step, **values}
    return [by_step[step] for step in sorted(by_step)]


def attempt_curves(jobs: Sequence[Job], *, max_points: int = MAX_POINTS) -> list[AttemptCurve]:
    """The curves of all attempts of the jobs that reported any point, by job and attempt."""
    attempts = (
        Attempt.objects.filter(job__in=jobs, points__isnull=False)
        .select_related("job")
        .annotate(reported=Count("points"))
        .order_by("job_id", "number")
    )
    curves = {attempt.pk: AttemptCurve(attempt=attempt) for attempt in attempts}
    stride = max((-(-attempt.reported // max_points) for attempt in attempts), default=1)
    points = ProgressPoint.objects.filter(attempt__in=curves)
    for point in _thin_out_points(stride, points).order_by("attempt_id", "step"):
        curves[point.attempt_id].points.append(point)
    return list(curves.values())


def _thin_out_points(stride: int, points: QuerySet[ProgressPoint]) -> QuerySet[ProgressPoint]:
    """One point in ``stride``, counted back from the newest, and every validation."""
    if stride == 1:
        return points
    rank = Window(RowNumber(), partition_by=F("attempt"), order_by=F("step").desc())
    return points.annotate(stride_offset=Mod(rank - 1, stride)).filter(
        Q(stride_offset=0) | Q(values__has_key="eval_loss")
    )


def attempt_starts(job: Job) -> list[tuple[int, int]]:
    """Number and first step of each attempt that reported any point."""
    reported = job.attempts.filter(points__isnull=False).annotate(first=Min("points__step"))
    return list(reported.order_by("number").values_list("number", "first"))


def checkpoint_steps(job: Job, *, limit: int) -> list[int]:
    """Steps of the newest checkpoints of all attempts, in order; a step that was saved twice is there once."""
    saved = ProgressPoint.objects.filter(attempt__job=job, values__has_key="checkpoint")
    newest = saved.order_by("-attempt__number", "-step").values_list("step", flat=True)[:limit]
    return sorted(set(newest))


def attempt_curves_since(job: Job, *, attempt: int, step: int) -> list[AttemptCurve]:
    """Points from that step of that attempt on, and those of later attempts.

    The step itself is included, because a validation adds its metric to an existing point.
    """
    rows = (
        ProgressPoint.objects.filter(attempt__job=job)
        .filter(Q(attempt__number__gt=attempt) | Q(attempt__number=attempt, step__gte=step))
        .select_related("attempt")
        .order_by("attempt__number", "step")[: 4 * MAX_POINTS]
    )
    curves: dict[int, AttemptCurve] = {}
    for row in rows:
        curve = curves.setdefault(row.attempt_id, AttemptCurve(attempt=row.attempt))
        curve.points.append(row)
    return list(curves.values())


#: Tokens to which examples are truncated by default.
LONGEST_BY_DEFAULT = 2048


def attempt_utilization(attempt: Attempt) -> ModelFlopsUtilization | None:
    """Utilization by the newest report; None unless architecture, tokens per second and the chip's peak are known.

    The length of an example is at most its number of characters, so that attention is not overestimated for short
    examples.
    """
    job = attempt.job
    speed = _reported_throughput(attempt)
    chip = ports.chip_by_name(attempt.chip) if attempt.chip else None
    # Conditions without a query first: most attempts fail one of them.
    if job.kind != JobKind.FINETUNE or chip is None or not chip.peak_rates or speed is None:
        return None
    if job.model_version is None:
        return None
    try:
        built = architecture_of(job.model_version)
    except ConfigRefused:
        return None
    adapted = job.spec.get("method", "full") != "full"
    trained = adapter_parameters(built, rank=job.spec["lora"]["rank"]) if adapted else None
    return model_flops_utilization(
        tokens_per_second=speed,
        token_operations=training_operations(
            built, length=_median_example_tokens(job), trained=trained
        ),
        chip=chip,
        dtype=_computation_dtype(job.spec, chip),
        cards=GangShape.from_json(job.shape).cards,
    )


def jobs_scaling_efficiency(
    jobs: Sequence[Job], attempts: Mapping[int, Attempt]
) -> tuple[float | None, ...]:
    """Scaling efficiency of each job relative to the one with the fewest cards; None if it reported no throughput.

    Empty unless the jobs use one model and one chip with different numbers of cards.
    """
    speeds = [_measured_cluster_throughput(job, attempts.get(job.pk)) for job in jobs]
    known = [speed for speed in speeds if speed is not None]
    settings = {(job.model_version_id, attempts[job.pk].chip) for job in jobs if job.pk in attempts}
    if len(settings) != 1 or len({speed.cards for speed in known}) < 2:
        return ()
    base = min(known, key=lambda speed: speed.cards)
    return tuple(
        None if speed is None else round(scaling_efficiency(base, speed), 4) for speed in speeds
    )


def _measured_cluster_throughput(job: Job, attempt: Attempt | None) -> ClusterThroughput | None:
    speed = _reported_throughput(attempt) if attempt is not None else None
    if speed is None:
        return None
    return ClusterThroughput(cards=GangShape.from_json(job.shape).cards, tokens_per_second=speed)


def _reported_throughput(attempt: Attempt) -> float | None:
    """Tokens per second of all cards together, as last reported."""
    reported = (attempt.progress or {}).get("tokens_per_second")
    usable = isinstance(reported, (int, float)) and not isinstance(reported, bool) and reported > 0
    return float(reported) if usable and reported is not None else None


def _median_example_tokens(job: Job) -> int:
    """Tokens of a median example, at most."""
    context = job.model_version.context_length if job.model_version else 0
    limit = job.spec.get("max_length") or min(context or LONGEST_BY_DEFAULT, LONGEST_BY_DEFAULT)
    statistics = job.dataset_version.statistics if job.dataset_version else {}
    median = example_characters(statistics, "p50")
    return min(limit, median) if median else int(limit)


def example_characters(statistics: Mapping[str, Any], percentile: str) -> int:
    """Characters of prompt and answer together."""
    parts = ("prompt_characters", "answer_characters")
    return sum(int(statistics.get(part, {}).get(percentile, 0)) for part in parts)


def _computation_dtype(spec: Mapping[str, Any], chip: Chip) -> Dtype:
    """The data type of the computation; float16 on chips without bfloat16."""
    precision = spec.get("precision", "auto")
    if precision != "auto":
        return Dtype(precision)
    if chip.kind is ChipKind.CPU:
        return Dtype.FLOAT32
    return Dtype.BFLOAT16 if Dtype.BFLOAT16 in chip.peak_rates else Dtype.FLOAT16


#: A reported time left is not shown after so long without a report.
STALE_AFTER = timedelta(minutes=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobProgress:
    step: int
    total: int
    #: None if the attempt reported none, or its last report is stale.
    time_left: timedelta | None
    #: Time since its last report, if that is stale.
    stale_for: timedelta | None

    @property
    def percent(self) -> int:
        return min(100, self.step * 100 // self.total)


def job_progress_of(
    progress: Mapping[str, Any] | None, *, reported_at: datetime | None, at: datetime
) -> JobProgress | None:
    """Progress by the newest report; None if the attempt has not reported its total number of steps."""
    step, total = (progress or {}).get("step"), (progress or {}).get("total_steps")
    if not isinstance(step, int) or not isinstance(total, int) or total < 1:
        return None
    since = at - reported_at if reported_at is not None else timedelta()
    stale = since > STALE_AFTER
    eta = (progress or {}).get("eta_seconds")
    time_left = None
    if isinstance(eta, int | float) and not stale:
        # The reported value minus the time since the report.
        time_left = max(timedelta(), timedelta(seconds=eta) - since)
    return JobProgress(
        step=step, total=total, time_left=time_left, stale_for=since if stale else None
    )
