"""What attempts reported, step by step.

A retry goes on from a checkpoint and so runs some steps again. A point is therefore known by its attempt
and its step: whoever follows a run asks for what came after the last pair that it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import Count, F, Q, QuerySet
from django.db.models.expressions import Window
from django.db.models.functions import Mod, RowNumber

from apps.jobs.models import Attempt, Job, ProgressPoint

#: Points of one attempt that a chart can show; more than there are pixels would be drawn over each other.
MOST_POINTS = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    step: int
    at: datetime
    #: As reported: ``loss``, ``tokens_per_second`` …
    values: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptCurve:
    """The points of one attempt by step, thinned out evenly."""

    attempt: Attempt
    points: list[Point] = field(default_factory=list)


def curve_of(job: Job, *, after: int = -1) -> list[dict[str, Any]]:
    """Points of all attempts with a step greater than ``after``, by step; a later attempt wins."""
    by_step: dict[int, dict[str, Any]] = {}
    rows = (
        job.attempts.filter(points__step__gt=after)
        .order_by("number", "points__step")
        .values_list("points__step", "points__values")
    )
    for step, values in rows:
        by_step[step] = {"step": step, **values}
    return [by_step[step] for step in sorted(by_step)]


def curves_of(jobs: Sequence[Job], *, most: int = MOST_POINTS) -> list[AttemptCurve]:
    """The curves of all their attempts that reported anything, by job and attempt."""
    attempts = (
        Attempt.objects.filter(job__in=jobs, points__isnull=False)
        .select_related("job")
        .annotate(reported=Count("points"))
        .order_by("job_id", "number")
    )
    curves = {attempt.pk: AttemptCurve(attempt=attempt) for attempt in attempts}
    stride = max((-(-attempt.reported // most) for attempt in attempts), default=1)
    points = ProgressPoint.objects.filter(attempt__in=curves)
    for point in _every(stride, points).order_by("attempt_id", "step"):
        curves[point.attempt_id].points.append(_point(point))
    return list(curves.values())


def _every(stride: int, points: QuerySet[ProgressPoint]) -> QuerySet[ProgressPoint]:
    """One in ``stride``, counted from the newest back; validations are few, and all of them stay."""
    if stride == 1:
        return points
    rank = Window(RowNumber(), partition_by=F("attempt"), order_by=F("step").desc())
    return points.annotate(place=Mod(rank - 1, stride)).filter(
        Q(place=0) | Q(values__has_key="eval_loss")
    )


def points_since(job: Job, *, attempt: int, step: int) -> list[AttemptCurve]:
    """What was reported at or after that step of that attempt, and by later attempts.

    The step itself is told again: a validation adds its figure to the point that is there already.
    """
    rows = (
        ProgressPoint.objects.filter(attempt__job=job)
        .filter(Q(attempt__number__gt=attempt) | Q(attempt__number=attempt, step__gte=step))
        .select_related("attempt")
        .order_by("attempt__number", "step")[: 4 * MOST_POINTS]
    )
    curves: dict[int, AttemptCurve] = {}
    for row in rows:
        curve = curves.setdefault(row.attempt_id, AttemptCurve(attempt=row.attempt))
        curve.points.append(_point(row))
    return list(curves.values())


def _point(row: ProgressPoint) -> Point:
    return Point(step=row.step, at=row.at, values=row.values)
