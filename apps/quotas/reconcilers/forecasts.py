"""The forecaster: simulates the queue to predict when pending claims start, and computes what-if results.

A forecast takes seconds of CPU with thousands of pending claims, so the forecaster pauses ten times as long as it
ran, and after a slow run it considers fewer claims. A what-if compares the forecast with the changes and without.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone

from apps.quotas import selectors
from apps.quotas.models import Claim, ForecastRun, WhatIf
from apps.quotas.selectors import forecasts
from apps.quotas.services.forecasts import forecasts_write, what_if_close
from controlplane.domain.common.reasons import Reason
from controlplane.domain.quotas.claims import ClaimState
from controlplane.domain.scheduling.forecast import PredictedStartTime, forecast_starts
from controlplane.domain.scheduling.plans import SchedulingPolicy
from controlplane.domain.scheduling.snapshots import SchedulingSnapshot
from controlplane.domain.scheduling.what_if import (
    ChangePriority,
    RemoveClaim,
    StartTimeChange,
    UnknownWhatIfObject,
    WhatIfChange,
    WhatIfState,
    changes_from_json,
    run_what_if,
)
from controlplane.persistence.leases import hold_leader_lease

FORECAST_LEASE = "quotas.forecasts"
FORECAST_LEASE_TTL = timedelta(minutes=5)
#: Minimum pause after a run.
MIN_PAUSE = timedelta(seconds=45)
#: The pause is this multiple of the run's duration.
PAUSE_FACTOR = 10
#: After a longer run, fewer claims are considered.
TARGET_DURATION = timedelta(seconds=30)
#: But never fewer than these.
MIN_CONSIDERED = 50

Clock = Callable[[], datetime]


def forecasts_refresh(
    *, policy: SchedulingPolicy, at: datetime, clock: Clock = timezone.now
) -> int:
    """Forecast once, unless nothing is pending, another process does, or it is too soon; return the count.

    :param clock: gives the end of the run, from which the pause is computed.
    """
    if not Claim.objects.filter(state=ClaimState.PENDING).exists():
        return 0
    last = ForecastRun.objects.first()
    if last is not None and at < last.ended_at + pause_after_forecast(last.ended_at - last.at):
        return 0
    with hold_leader_lease(FORECAST_LEASE, ttl=FORECAST_LEASE_TTL) as lease:
        if lease is None:
            return 0
        with transaction.atomic():
            snapshot = selectors.scheduling_snapshot()
        order = forecasts.scheduling_order(snapshot)
        considered = forecasts.limit_pending_claims(
            snapshot, order, most=_max_forecast_claims(last)
        )
        assumed = forecasts.forecast_assumptions(at, claims=len(considered.claims))
        forecasted = forecast_starts(considered, policy, at=at, assumptions=assumed)
        with transaction.atomic():
            if not lease.check():
                return 0
            return forecasts_write(forecasted=forecasted, order=order, at=at, ended_at=clock())


def pause_after_forecast(worked: timedelta) -> timedelta:
    return max(MIN_PAUSE, worked * PAUSE_FACTOR)


def _max_forecast_claims(last: ForecastRun | None) -> int:
    """How many claims to consider: as many as fit into ``TARGET_DURATION`` at the speed of the last run."""
    if last is None or not last.looked_at:
        return forecasts.MAX_CONSIDERED
    worked = last.ended_at - last.at
    affordable = (
        last.looked_at * (TARGET_DURATION / worked)
        if worked > TARGET_DURATION
        else forecasts.MAX_CONSIDERED
    )
    return max(MIN_CONSIDERED, min(forecasts.MAX_CONSIDERED, round(affordable)))


WHAT_IF_LEASE = "quotas.what_ifs"
WHAT_IF_LEASE_TTL = timedelta(minutes=5)
#: What-if requests per run.
WHAT_IF_BATCH = 2
#: Maximum other claims in a result: those that gain most, and as many that lose most.
_MAX_LISTED = 20


def what_ifs_reconcile(*, policy: SchedulingPolicy, at: datetime) -> int:
    """Compute the oldest requested what-ifs, unless another process does; return how many."""
    if not WhatIf.objects.filter(state=WhatIfState.ASKED).exists():
        return 0
    with hold_leader_lease(WHAT_IF_LEASE, ttl=WHAT_IF_LEASE_TTL) as lease:
        if lease is None:
            return 0
        what_if_row = list(
            WhatIf.objects.filter(state=WhatIfState.ASKED)
            .select_related("claim", "queue")
            .order_by("id")[:WHAT_IF_BATCH]
        )
        return sum(_answer_what_if(one, policy=policy, at=at) for one in what_if_row)


def _answer_what_if(what_if_row: WhatIf, *, policy: SchedulingPolicy, at: datetime) -> bool:
    began = time.monotonic()
    with transaction.atomic():
        snapshot = selectors.scheduling_snapshot()
    changes = changes_from_json(what_if_row.changes)
    considered = forecasts.limit_pending_claims(
        snapshot,
        forecasts.scheduling_order(snapshot),
        always=_what_if_subject_claims(what_if_row, changes, snapshot),
        most=forecasts.MAX_CONSIDERED,
    )
    assumed = forecasts.forecast_assumptions(at, claims=len(considered.claims))
    try:
        found = run_what_if(considered, changes, policy, at=at, assumptions=assumed)
    except UnknownWhatIfObject as unknown:
        return what_if_close(uid=what_if_row.uid, refusal=str(unknown), at=at)
    by_claim = {each.claim: each for each in found}
    own = by_claim.get(what_if_row.claim.uid) if what_if_row.claim else None
    if what_if_row.claim and own is None:
        reason = Reason(
            "what_if.claim.not_pending",
            "the claim is no longer pending; it has been admitted or released",
        )
        return what_if_close(uid=what_if_row.uid, refusal=reason, at=at)
    answer = {
        "own": _start_time_change_json(own) if own else None,
        **_what_if_effects_json(found, snapshot, own=own),
        "waiting": len(snapshot.claims),
        "looked_at": len(considered.claims),
        "seconds": round(time.monotonic() - began, 3),
    }
    return what_if_close(uid=what_if_row.uid, answer=answer, at=at)


def _what_if_subject_claims(
    what_if_row: WhatIf, changes: Iterable[WhatIfChange], snapshot: SchedulingSnapshot
) -> set[str]:
    """Claims that the request is about; they are considered wherever they are in the queue."""
    named = {change.claim for change in changes if isinstance(change, ChangePriority | RemoveClaim)}
    if what_if_row.claim:
        named.add(what_if_row.claim.uid)
    return named & {claim.uid for claim in snapshot.claims}


def _what_if_effects_json(
    differences: Iterable[StartTimeChange],
    snapshot: SchedulingSnapshot,
    *,
    own: StartTimeChange | None,
) -> Mapping[str, Any]:
    """Effects on other claims as JSON, without expected arrivals."""
    waiting = {claim.uid for claim in snapshot.claims}
    running = {claim.uid for claim in snapshot.running}
    known = [each for each in differences if each.claim in waiting]
    moved = [each for each in known if each is not own and _start_seconds_gained(each)]
    earlier = sorted(
        (each for each in moved if _start_seconds_gained(each) > 0),
        key=_start_seconds_gained,
        reverse=True,
    )
    later = sorted(
        (each for each in moved if _start_seconds_gained(each) < 0), key=_start_seconds_gained
    )
    stopped = [
        each
        for each in differences
        if each.claim in running and each.before is None and each.after is not None
    ]
    return {
        "earlier": [_start_time_change_json(each) for each in earlier[:_MAX_LISTED]],
        "later": [_start_time_change_json(each) for each in later[:_MAX_LISTED]],
        "stopped": [_start_time_change_json(each) for each in stopped[:_MAX_LISTED]],
        "earlier_count": len(earlier),
        "later_count": len(later),
        "stopped_count": len(stopped),
        "starting_before": sum(_has_start(each.before) for each in known),
        "starting_after": sum(_has_start(each.after) for each in known),
    }


def _start_seconds_gained(each: StartTimeChange) -> float:
    """Seconds that it starts earlier; the whole horizon if it starts in only one of the forecasts."""
    if each.gained is not None:
        return each.gained.total_seconds()
    whole = forecasts.HORIZON.total_seconds()
    return whole * (_has_start(each.after) - _has_start(each.before))


def _has_start(forecast: PredictedStartTime | None) -> bool:
    return forecast is not None and forecast.starts_at is not None


def _start_time_change_json(each: StartTimeChange) -> dict[str, Any]:
    return {
        "claim": each.claim,
        "gained": None if each.gained is None else each.gained.total_seconds(),
        "before": _forecast_json(each.before),
        "after": _forecast_json(each.after),
    }


def _forecast_json(forecast: PredictedStartTime | None) -> dict[str, Any] | None:
    if forecast is None:
        return None
    return {
        "starts_at": _format_iso(forecast.starts_at),
        "earliest": _format_iso(forecast.earliest),
        "latest": _format_iso(forecast.latest),
        "chip": forecast.chip,
        "nodes": len(forecast.nodes),
        "blocked_by": list(forecast.blocked_by[:4]),
    }


def _format_iso(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()
