"""Answers to "what if": the forecast with the changes and without, side by side."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from apps.quotas import selectors
from apps.quotas.models import WhatIf
from apps.quotas.selectors import forecasts
from apps.quotas.services.what_ifs import what_if_answer, what_if_refuse
from controlplane.domain.scheduling.forecast import Forecast
from controlplane.domain.scheduling.policies import Policy
from controlplane.domain.scheduling.questions import WhatIfState, changes_from_json
from controlplane.domain.scheduling.snapshots import Snapshot
from controlplane.domain.scheduling.what_if import (
    Cancelled,
    Change,
    Difference,
    UnknownSubject,
    Urgent,
    what_if,
)
from controlplane.persistence.leases import loop_lease

LEASE = "quotas.what_ifs"
LEASE_TTL = timedelta(minutes=5)
#: Questions that one turn answers.
BATCH = 2
#: Others of whom an answer tells: so many that gain most, and as many that lose most.
_MOST_TOLD = 20


def what_ifs_answer(*, policy: Policy, at: datetime) -> int:
    """Answer the oldest questions, one after the other, unless somebody else does; says how many."""
    if not WhatIf.objects.filter(state=WhatIfState.ASKED).exists():
        return 0
    with loop_lease(LEASE, ttl=LEASE_TTL) as lease:
        if lease is None:
            return 0
        asked = list(
            WhatIf.objects.filter(state=WhatIfState.ASKED)
            .select_related("claim", "queue")
            .order_by("id")[:BATCH]
        )
        return sum(_answer(one, policy=policy, at=at) for one in asked)


def _answer(asked: WhatIf, *, policy: Policy, at: datetime) -> bool:
    began = time.monotonic()
    with transaction.atomic():
        snapshot = selectors.snapshot()
    changes = changes_from_json(asked.changes)
    narrowed = forecasts.looked_at(
        snapshot,
        forecasts.in_order(snapshot),
        always=_subjects(asked, changes, snapshot),
        most=forecasts.MOST_LOOKED_AT,
    )
    assumed = forecasts.assumptions_at(at, claims=len(narrowed.claims))
    try:
        found = what_if(narrowed, changes, policy, at=at, assumptions=assumed)
    except UnknownSubject as unknown:
        return what_if_refuse(uid=asked.uid, why=str(unknown), at=at)
    told = {each.claim: each for each in found.differences}
    own = told.get(asked.claim.uid) if asked.claim else None
    if asked.claim and own is None:
        why = "the claim does not wait any more; it was given its cards, or it is gone"
        return what_if_refuse(uid=asked.uid, why=why, at=at)
    answer = {
        "own": _told(own) if own else None,
        **_among(found.differences, snapshot, own=own),
        "waiting": len(snapshot.claims),
        "looked_at": len(narrowed.claims),
        "seconds": round(time.monotonic() - began, 3),
    }
    return what_if_answer(uid=asked.uid, answer=answer, at=at)


def _subjects(asked: WhatIf, changes: Iterable[Change], snapshot: Snapshot) -> set[str]:
    """Claims that the question is about; they are looked at, however many are before them."""
    named = {change.claim for change in changes if isinstance(change, Urgent | Cancelled)}
    if asked.claim:
        named.add(asked.claim.uid)
    return named & {claim.uid for claim in snapshot.claims}


def _among(
    differences: Iterable[Difference], snapshot: Snapshot, *, own: Difference | None
) -> Mapping[str, Any]:
    """Who else is concerned, without those that are only expected to come."""
    waiting = {claim.uid for claim in snapshot.claims}
    running = {claim.uid for claim in snapshot.running}
    known = [each for each in differences if each.claim in waiting]
    moved = [each for each in known if each is not own and _seconds(each)]
    earlier = sorted((each for each in moved if _seconds(each) > 0), key=_seconds, reverse=True)
    later = sorted((each for each in moved if _seconds(each) < 0), key=_seconds)
    stopped = [
        each
        for each in differences
        if each.claim in running and each.before is None and each.after is not None
    ]
    return {
        "earlier": [_told(each) for each in earlier[:_MOST_TOLD]],
        "later": [_told(each) for each in later[:_MOST_TOLD]],
        "stopped": [_told(each) for each in stopped[:_MOST_TOLD]],
        "earlier_count": len(earlier),
        "later_count": len(later),
        "stopped_count": len(stopped),
        "starting_before": sum(_starts(each.before) for each in known),
        "starting_after": sum(_starts(each.after) for each in known),
    }


def _seconds(each: Difference) -> float:
    """How much earlier it starts. One that starts in one of both only gains or loses the whole horizon."""
    if each.gained is not None:
        return each.gained.total_seconds()
    whole = forecasts.HORIZON.total_seconds()
    return whole * (_starts(each.after) - _starts(each.before))


def _starts(told: Forecast | None) -> bool:
    return told is not None and told.starts_at is not None


def _told(each: Difference) -> dict[str, Any]:
    return {
        "claim": each.claim,
        "gained": None if each.gained is None else each.gained.total_seconds(),
        "before": _outlook(each.before),
        "after": _outlook(each.after),
    }


def _outlook(told: Forecast | None) -> dict[str, Any] | None:
    if told is None:
        return None
    return {
        "starts_at": _when(told.starts_at),
        "earliest": _when(told.earliest),
        "latest": _when(told.latest),
        "chip": told.chip,
        "nodes": len(told.nodes),
        "waits_for": list(told.waits_for[:4]),
    }


def _when(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()
