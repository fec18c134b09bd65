"""The look ahead: play the queue forward and keep for each claim when it will probably start.

It costs seconds of a processor where thousands wait, so it rests ten times as long as it worked, and where it took
too long it looks at fewer claims the next time.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from django.db import transaction
from django.utils import timezone

from apps.quotas import selectors
from apps.quotas.models import Claim, ForecastRun
from apps.quotas.selectors import forecasts
from apps.quotas.services.forecasts import forecasts_write
from controlplane.domain.claims import ClaimState
from controlplane.domain.scheduling.forecast import forecast
from controlplane.domain.scheduling.policies import Policy
from controlplane.persistence.leases import loop_lease

LEASE = "quotas.forecasts"
LEASE_TTL = timedelta(minutes=5)
#: No look ahead begins sooner after the last one.
LEAST_REST = timedelta(seconds=45)
#: It rests so many times as long as it worked.
REST = 10
#: It looks at fewer claims the next time where it took longer.
LONGEST = timedelta(seconds=30)
#: But never at fewer than these.
LEAST_LOOKED_AT = 50

Clock = Callable[[], datetime]


def forecasts_refresh(*, policy: Policy, at: datetime, clock: Clock = timezone.now) -> int:
    """Look ahead once, unless nothing waits, another looks, or it is too soon; say how many claims were told.

    :param clock: says when it ended, so that the rest is as long as the work.
    """
    if not Claim.objects.filter(state=ClaimState.PENDING).exists():
        return 0
    last = ForecastRun.objects.first()
    if last is not None and at < last.ended_at + rest_after(last.ended_at - last.at):
        return 0
    with loop_lease(LEASE, ttl=LEASE_TTL) as lease:
        if lease is None:
            return 0
        with transaction.atomic():
            snapshot = selectors.snapshot()
        order = forecasts.in_order(snapshot)
        narrowed = forecasts.looked_at(snapshot, order, most=_most(last))
        assumed = forecasts.assumptions_at(at, claims=len(narrowed.claims))
        told = forecast(narrowed, policy, at=at, assumptions=assumed)
        with transaction.atomic():
            if not lease.check():
                return 0
            return forecasts_write(told=told, order=order, at=at, ended_at=clock())


def rest_after(worked: timedelta) -> timedelta:
    """How long it rests after it has worked so long."""
    return max(LEAST_REST, worked * REST)


def _most(last: ForecastRun | None) -> int:
    """Claims that it looks at: as many as it could the last time in the time that it has."""
    if last is None or not last.looked_at:
        return forecasts.MOST_LOOKED_AT
    worked = last.ended_at - last.at
    affordable = (
        last.looked_at * (LONGEST / worked) if worked > LONGEST else forecasts.MOST_LOOKED_AT
    )
    return max(LEAST_LOOKED_AT, min(forecasts.MOST_LOOKED_AT, round(affordable)))
