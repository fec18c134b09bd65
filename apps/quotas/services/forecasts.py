"""Stores forecasts, and what-if requests and their results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from apps.accounts import selectors as accounts
from apps.accounts.models import User
from apps.quotas.models import Claim, ClaimForecast, ForecastRun, Queue, WhatIf
from apps.quotas.selectors.forecasts import HORIZON
from controlplane.domain.common.permissions import Permission
from controlplane.domain.common.reasons import ReasonedValueError
from controlplane.domain.quotas.claims import ClaimState
from controlplane.domain.scheduling.forecast import PredictedStartTime
from controlplane.domain.scheduling.what_if import WhatIfChange, WhatIfState, changes_as_json
from controlplane.outbox.messages import publish_message

#: Forecast runs that are stored.
_MAX_RUNS = 200
_FORECAST_FIELDS = (
    "starts_at",
    "earliest",
    "latest",
    "chip",
    "nodes",
    "blocked_by",
    "reason",
    "place",
    "created_at",
)


@transaction.atomic
def forecasts_write(
    *,
    forecasted: Mapping[str, PredictedStartTime],
    order: Sequence[str],
    at: datetime,
    ended_at: datetime,
) -> int:
    """Store the forecasts of claims that are still pending, and delete all others; return the count.

    :param order: uids of all pending claims in scheduling order.
    """
    places = {uid: place for place, uid in enumerate(order, start=1)}
    waiting = Claim.objects.filter(state=ClaimState.PENDING, uid__in=places).values_list(
        "uid", "pk"
    )
    keys = {uid: pk for uid, pk in waiting if uid in forecasted}
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
                blocked_by=list(each.blocked_by),
                reason=each.reason,
                place=places[uid],
                created_at=at,
            )
            for uid, each in forecasted.items()
            if uid in keys
        ),
        batch_size=500,
        update_conflicts=True,
        unique_fields=["claim"],
        update_fields=_FORECAST_FIELDS,
    )
    run = ForecastRun.objects.create(
        at=at,
        ended_at=ended_at,
        waiting=len(order),
        looked_at=sum(uid in forecasted for uid in order),
        horizon=round(HORIZON.total_seconds()),
    )
    ForecastRun.objects.filter(pk__lte=run.pk - _MAX_RUNS).delete()
    return len(keys)


#: Maximum open what-if requests of one user.
MAX_OPEN = 3
#: Retention of what-ifs.
WHAT_IF_RETENTION = timedelta(days=30)


class WhatIfRefused(ReasonedValueError):
    """The request is invalid; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIfRequest:
    changes: Sequence[WhatIfChange]
    queue: Queue
    #: The claim in question; None to compare only the effects on all claims.
    claim: Claim | None = None


@transaction.atomic
def what_if_create(*, question: WhatIfRequest, actor: User) -> WhatIf:
    """Store the request; a controller computes the result.

    :raises PermissionRefused: if the claim is of none of the actor's teams; without a claim, if the actor is not a
        company administrator.
    :raises WhatIfRefused: if it changes nothing, the claim is not pending, or the actor has too many open
        requests.
    """
    claim = question.claim
    if claim is None:
        accounts.require_permission(actor, Permission.VIEW, team=None)
    else:
        accounts.require_permission(actor, Permission.VIEW, team=claim.team)
        if claim.state != ClaimState.PENDING:
            raise WhatIfRefused("claim.state.not_pending", "the claim is no longer pending")
    if not question.changes:
        raise WhatIfRefused(
            "what_if.changes.missing", "the what-if request has no changes; add at least one"
        )
    # Locked, so that concurrent requests count each other.
    asking = User.objects.select_for_update(no_key=True).get(pk=actor.pk)
    open_count = WhatIf.objects.filter(user=asking, state=WhatIfState.ASKED).count()
    if open_count >= MAX_OPEN:
        raise WhatIfRefused(
            "what_if.limit.reached",
            "{count} of your what-if requests are still in progress; wait for their results",
            count=open_count,
        )
    row = WhatIf.objects.create(
        user=asking,
        team=claim.team if claim else None,
        claim=claim,
        queue=question.queue,
        changes=changes_as_json(question.changes),
    )
    publish_message("what_if.asked", what_if_uid=row.uid)
    return row


def what_if_close(
    *, uid: str, at: datetime, answer: Mapping[str, Any] | None = None, refusal: str = ""
) -> bool:
    """Store the result, or why it was refused; False if it is closed already."""
    # A what-if has no history of transitions: its row is all there is.
    closed = {
        "state": WhatIfState.REFUSED if answer is None else WhatIfState.ANSWERED,
        "answer": dict(answer or {}),
        "refusal": refusal,
        "answered_at": at,
    }
    return bool(WhatIf.objects.filter(uid=uid, state=WhatIfState.ASKED).update(**closed))


def what_ifs_prune(*, at: datetime) -> int:
    """Delete what-ifs after their retention; return their number."""
    return WhatIf.objects.filter(created_at__lt=at - WHAT_IF_RETENTION).delete()[0]
