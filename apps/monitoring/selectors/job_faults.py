"""Faults of the cards and nodes that a job ran on, by the step that its training had reached."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from django.db.models import OuterRef, Q, Subquery

from apps.jobs.models import Attempt, Job, ProgressPoint
from apps.monitoring.models import Fault
from apps.quotas.models import Allocation
from controlplane.domain.health.faults import FaultLevel


class JobFault(NamedTuple):
    fault: Fault
    #: The newest step that had been reported when the fault began; the first one if none had been.
    step: int


def job_faults(job: Job, *, attempts: int, limit: int, at: datetime) -> Sequence[JobFault]:
    """Faults of cards and nodes that began while an attempt of the job had them; the oldest first.

    An attempt counts until it ends, after the release of its cards, so that the fault of a crash belongs to it.

    :param attempts: number of newest attempts that count.
    :param limit: maximum number of faults; the newest ones are returned.
    """
    newest = job.attempts.exclude(claim_uid="").order_by("-number")[:attempts]
    during = _during_attempts(list(newest), at=at)
    if not during:
        return []
    points = ProgressPoint.objects.filter(attempt__job=job)
    reported = points.filter(at__lte=OuterRef("began_at")).order_by("-at", "-step")
    rows = (
        Fault.objects.filter(during, level__gt=FaultLevel.NOTE)
        .select_related("node__cluster", "card__node")
        .annotate(step=Subquery(reported.values("step")[:1]))
        .order_by("-began_at", "-id")[:limit]
    )
    faults = list(reversed(rows))
    first = points.order_by("attempt__number", "step").values_list("step", flat=True).first()
    if not faults or first is None:
        return []
    return [JobFault(row, first if row.step is None else row.step) for row in faults]


def _during_attempts(attempts: Sequence[Attempt], *, at: datetime) -> Q:
    """Faults that began on cards or nodes of one of the attempts, from its allocation to its end or ``at``."""
    by_claim = {attempt.claim_uid: attempt for attempt in attempts}
    places: dict[str, tuple[set[int], set[int], datetime]] = {}
    allocations = Allocation.objects.filter(claim__uid__in=by_claim)
    for claim, card, node, since in allocations.values_list(
        "claim__uid", "card_id", "node_id", "allocated_at"
    ):
        cards, nodes, begin = places.setdefault(claim, (set(), set(), since))
        cards.add(card)
        nodes.add(node)
        places[claim] = (cards, nodes, min(begin, since))
    chosen = Q()
    for claim, (cards, nodes, since) in places.items():
        concerned = Q(card__in=cards) | Q(card=None, node__in=nodes)
        until = by_claim[claim].ended_at or at
        chosen |= concerned & Q(began_at__gte=since, began_at__lte=until)
    return chosen
