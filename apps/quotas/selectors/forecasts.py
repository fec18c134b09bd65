"""Forecasts of when pending claims start: inputs, stored results, and results of what-ifs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.db.models import QuerySet

from apps.accounts import selectors as accounts
from apps.quotas.models import Claim, ClaimForecast, ForecastRun, WhatIf
from apps.quotas.selectors.queues import QueueVisibility
from apps.quotas.selectors.scheduling_cycles import current_scheduling_policy
from apps.quotas.selectors.snapshots import claim_snapshot_of
from controlplane.domain.quotas.claims import ClaimState, ReleaseReason
from controlplane.domain.scheduling.forecast import ForecastAssumptions
from controlplane.domain.scheduling.pending_queues import (
    ClaimOrder,
    find_nominated_cards,
    queue_tree,
)
from controlplane.domain.scheduling.runtime_estimates import CompletedRun, RuntimeHistory
from controlplane.domain.scheduling.snapshots import ClaimSnapshot, SchedulingSnapshot

#: Forecast horizon.
HORIZON = timedelta(days=1)
#: Runs that ended within this window, up to a maximum, are samples for predicting runtimes.
HISTORY_WINDOW = timedelta(days=28)
MAX_PAST_RUNS = 5000
#: Time resolution of the simulation: for few claims, and for many.
GRAIN, COARSE_GRAIN, FEW = timedelta(minutes=1), timedelta(minutes=10), 100
#: Maximum cycles of a simulation: enough for a day at coarse resolution.
MAX_CYCLES = 150
#: Maximum claims of the last day that are expected to arrive again.
MAX_ARRIVALS = 500
#: Maximum claims considered, the first of each queue: per queue, and in total.
MAX_PER_QUEUE = 200
MAX_CONSIDERED = 2000


def forecast_assumptions(at: datetime, *, claims: int) -> ForecastAssumptions:
    """Assumptions of a forecast: runtimes as in the past, and arrivals as in the last day.

    :param claims: the number of claims considered; the resolution is coarser for many.
    """
    return ForecastAssumptions(
        horizon=HORIZON,
        resolution=GRAIN if claims <= FEW else COARSE_GRAIN,
        cycles=MAX_CYCLES,
        runtimes=RuntimeHistory(_completed_workload_runs(at)),
        arrivals=_expected_arrivals(at),
        grace=current_scheduling_policy().grace,
    )


def _completed_workload_runs(at: datetime) -> list[CompletedRun]:
    rows = (
        Claim.objects.filter(
            state=ClaimState.RELEASED,
            release_reason=ReleaseReason.FINISHED,
            released_at__gt=at - HISTORY_WINDOW,
            admitted_at__isnull=False,
        )
        .order_by("-id")
        .values_list("queue__uid", "card_count", "admitted_at", "released_at")[:MAX_PAST_RUNS]
    )
    return [
        CompletedRun(queue=queue, cards=cards, runtime=max(timedelta(0), until - since))
        for queue, cards, since, until in rows
        if since and until
    ]


def _expected_arrivals(at: datetime) -> tuple[ClaimSnapshot, ...]:
    """Claims of the last day, expected again a day later."""
    rows = (
        Claim.objects.filter(
            created_at__gt=at - timedelta(days=1),
            created_at__lte=at,
            # Claims that resume evicted workloads are not arrivals.
            in_line_since=None,
            queue__retired_at=None,
        )
        .select_related("queue")
        .order_by("-id")[:MAX_ARRIVALS]
    )
    return tuple(
        replace(
            claim_snapshot_of(claim),
            uid=f"tomorrow-{claim.uid}",
            created_at=claim.created_at + timedelta(days=1),
        )
        for claim in rows
    )


def scheduling_order(snapshot: SchedulingSnapshot) -> tuple[str, ...]:
    """Uids of all pending claims in the current scheduling order."""
    return tuple(
        claim.uid
        for claim in ClaimOrder(
            snapshot.claims, queue_tree(snapshot, find_nominated_cards(snapshot))
        )
    )


def limit_pending_claims(
    snapshot: SchedulingSnapshot, order: Sequence[str], *, always: Collection[str] = (), most: int
) -> SchedulingSnapshot:
    """The snapshot with only as many pending claims as a forecast can consider: the first of each queue.

    :param always: uids that are always included.
    :param most: maximum claims in total.
    """
    queue_of = {claim.uid: claim.queue for claim in snapshot.claims}
    of_queue: dict[str, int] = defaultdict(int)
    considered = set(always)
    for uid in order:
        if len(considered) >= most:
            break
        of_queue[queue_of[uid]] += 1
        if of_queue[queue_of[uid]] <= MAX_PER_QUEUE:
            considered.add(uid)
    claims = tuple(claim for claim in snapshot.claims if claim.uid in considered)
    return replace(snapshot, claims=claims)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadSummary:
    """A workload as a reader may see it."""

    #: Name of the workload; empty if the reader may see only the team.
    name: str
    team: str
    cards: int
    work_kind: str = ""
    work_uid: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class VisibleForecast:
    """The forecast of a claim as a reader may see it."""

    starts_at: datetime | None = None
    earliest: datetime | None = None
    latest: datetime | None = None
    chip: str = ""
    nodes: int = 0
    blocked_by: tuple[WorkloadSummary, ...] = ()
    #: How many more claims have to end first.
    others: int = 0
    created_at: datetime | None = None
    #: It was considered, but does not start within ``HORIZON``.
    beyond: bool = False
    #: It was not considered, as too many are before it.
    unseen: bool = False
    #: Position among all pending claims in scheduling order; None if unknown.
    place: int | None = None


#: Maximum workloads listed in ``blocked_by``.
_MAX_NAMED = 4


def visible_forecast(claim: Claim, *, visibility: QueueVisibility) -> VisibleForecast | None:
    """The last forecast of a pending claim; None before the first forecast after its creation."""
    forecast = ClaimForecast.objects.filter(claim=claim).first()
    if forecast is None:
        run = ForecastRun.objects.first()
        if run is None or run.at < claim.created_at:
            return None
        return VisibleForecast(unseen=True, created_at=run.at)
    named = forecast.blocked_by[:_MAX_NAMED]
    rows = {
        row.uid: row for row in Claim.objects.filter(uid__in=named).select_related("team", "queue")
    }
    awaited = tuple(
        workload_summary(rows[uid], visibility=visibility) for uid in named if uid in rows
    )
    return VisibleForecast(
        starts_at=forecast.starts_at,
        earliest=forecast.earliest,
        latest=forecast.latest,
        chip=forecast.chip,
        nodes=len(forecast.nodes),
        blocked_by=awaited,
        others=len(forecast.blocked_by) - len(awaited),
        created_at=forecast.created_at,
        beyond=forecast.starts_at is None,
        place=forecast.place,
    )


def workload_summary(claim: Claim, *, visibility: QueueVisibility) -> WorkloadSummary:
    """The claim's workload as that reader may see it."""
    if not visibility.can_name(claim):
        return WorkloadSummary(name="", team=claim.team.name, cards=claim.card_count)
    return WorkloadSummary(
        name=claim.work_name or claim.owner_uid[:8],
        team=claim.team.name,
        cards=claim.card_count,
        work_kind=claim.work_kind,
        work_uid=claim.work_uid,
    )


def latest_forecast_run() -> ForecastRun | None:
    return ForecastRun.objects.first()


def what_ifs_visible(user: accounts.RequestUser) -> QuerySet[WhatIf]:
    """What-ifs about claims of the user's teams; all for company administrators."""
    rows = WhatIf.objects.select_related("claim__team", "claim__queue", "queue", "user", "team")
    if accounts.is_company_administrator(user):
        return rows
    return rows.filter(team__in=accounts.teams_visible(user))


@dataclass(frozen=True, slots=True, kw_only=True)
class StartForecast:
    """The forecast of a claim in one of the two simulations."""

    starts_at: datetime | None
    earliest: datetime | None
    latest: datetime | None
    chip: str
    nodes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIfEffect:
    work: WorkloadSummary
    #: How much earlier it starts; negative if later; None if it starts in at most one simulation.
    gained: timedelta | None
    #: None if it is not pending.
    before: StartForecast | None
    after: StartForecast | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIfOutcome:
    #: The claim of the request.
    own: WhatIfEffect | None
    earlier: tuple[WhatIfEffect, ...]
    later: tuple[WhatIfEffect, ...]
    #: Running claims that would be preempted.
    stopped: tuple[WhatIfEffect, ...]
    earlier_count: int
    later_count: int
    stopped_count: int
    #: Pending claims that start within the horizon.
    starting_before: int
    starting_after: int
    waiting: int
    looked_at: int
    seconds: float


def what_if_result(what_if: WhatIf, *, visibility: QueueVisibility) -> WhatIfOutcome | None:
    """The result as a reader may see it; None until it is computed."""
    stored: Mapping[str, Any] = what_if.answer
    if not stored:
        return None
    groups = ("earlier", "later", "stopped")
    uids = {each["claim"] for group in groups for each in stored[group]}
    if stored["own"]:
        uids.add(stored["own"]["claim"])
    rows = Claim.objects.filter(uid__in=uids).select_related("team", "queue")
    claims = {claim.uid: claim for claim in rows}

    def what_if_effect(each: Mapping[str, Any]) -> WhatIfEffect:
        return WhatIfEffect(
            work=workload_summary(claims[each["claim"]], visibility=visibility),
            gained=None if each["gained"] is None else timedelta(seconds=each["gained"]),
            before=_parse_start_forecast(each["before"]),
            after=_parse_start_forecast(each["after"]),
        )

    effects = {group: tuple(map(what_if_effect, stored[group])) for group in groups}
    own = what_if_effect(stored["own"]) if stored["own"] else None
    return WhatIfOutcome(**{**stored, **effects, "own": own})


def _parse_start_forecast(stored: Mapping[str, Any] | None) -> StartForecast | None:
    if stored is None:
        return None
    return StartForecast(
        starts_at=_parse_instant(stored["starts_at"]),
        earliest=_parse_instant(stored["earliest"]),
        latest=_parse_instant(stored["latest"]),
        chip=stored["chip"],
        nodes=stored["nodes"],
    )


def _parse_instant(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
