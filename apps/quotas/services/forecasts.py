"""Forecasts are written down: all of one look ahead, or nothing of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from django.db import transaction

from apps.quotas.models import Claim, ClaimForecast, ForecastRun
from apps.quotas.selectors.forecasts import HORIZON
from controlplane.domain.claims import ClaimState
from controlplane.domain.scheduling.forecast import Forecast

#: Looks ahead that are remembered.
_KEPT_RUNS = 200
_TOLD = (
    "starts_at",
    "earliest",
    "latest",
    "chip",
    "nodes",
    "waits_for",
    "reason",
    "place",
    "made_at",
)


@transaction.atomic
def forecasts_write(
    *,
    told: Mapping[str, Forecast],
    order: Sequence[str],
    at: datetime,
    ended_at: datetime,
) -> int:
    """Keep what was foretold of claims that still wait, and forget the rest; says how many are kept.

    :param order: uids of all that waited, as the scheduler takes them.
    """
    places = {uid: place for place, uid in enumerate(order, start=1)}
    waiting = Claim.objects.filter(state=ClaimState.PENDING, uid__in=places).values_list(
        "uid", "pk"
    )
    keys = {uid: pk for uid, pk in waiting if uid in told}
    ClaimForecast.objects.exclude(claim_id__in=keys.values()).delete()
    ClaimForecast.objects.bulk_create(
        (
            ClaimForecast(
                claim_id=keys[uid],
                starts_at=each.starts_at,
                earliest=each.earliest,
                latest=each.latest,
                chip=each.chip,
                nodes=list(each.nodes),
                waits_for=list(each.waits_for),
                reason=each.reason,
                place=places[uid],
                made_at=at,
            )
            for uid, each in told.items()
            if uid in keys
        ),
        batch_size=500,
        update_conflicts=True,
        unique_fields=["claim"],
        update_fields=_TOLD,
    )
    run = ForecastRun.objects.create(
        at=at,
        ended_at=ended_at,
        waiting=len(order),
        looked_at=sum(uid in told for uid in order),
        horizon=round(HORIZON.total_seconds()),
    )
    ForecastRun.objects.filter(pk__lte=run.pk - _KEPT_RUNS).delete()
    return len(keys)
