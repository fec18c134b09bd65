"""How jobs ended lately, and on which cards: what suspicions are weighed by."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from django.db.models import QuerySet

from apps.jobs.models import Attempt
from apps.quotas.models import Allocation
from controlplane.domain.health.crashes import signature
from controlplane.domain.health.decisions import Blame, RunView
from controlplane.domain.jobs.lifecycle import AttemptState
from controlplane.ports.clusters import ExitCause

#: Whatever it was, the program or what was asked for did it.
_OF_THE_PROGRAM = frozenset(
    {ExitCause.OUT_OF_MEMORY, ExitCause.OUT_OF_TIME, ExitCause.DISK_FULL, ExitCause.NOT_PREPARED}
)
_LATELY = timedelta(minutes=10)
#: The newest crashes only: a storm of them is one user's loop more often than not.
_MOST = 500

Places = Mapping[str, tuple[str, ...]]


def runs_since(since: datetime, *, at: datetime) -> tuple[RunView, ...]:
    """Attempts that crashed since then, and those that ended well where they crashed or of the same jobs.

    Empty, after one query, where nothing crashed lately: what was known before was weighed then.
    """
    ended = Attempt.objects.filter(ended_at__gte=since, started_at__isnull=False)
    if not ended.filter(state=AttemptState.FAILED, ended_at__gte=at - _LATELY).exists():
        return ()
    crashed = list(_rows(ended.filter(state=AttemptState.FAILED).order_by("-ended_at")[:_MOST]))
    if not crashed:
        return ()
    places = _places([row["claim_uid"] for row in crashed])
    nodes = {node for place in places.values() for node in place}
    there = Allocation.objects.filter(node__uid__in=nodes, allocated_at__gte=since)
    well = ended.filter(state=AttemptState.SUCCEEDED)
    good = list(
        _rows(
            (
                well.filter(job__in=[row["job_id"] for row in crashed])
                | well.filter(claim_uid__in=there.values("claim__uid"))
            ).order_by("-ended_at")[: 4 * _MOST]
        )
    )
    places |= _places([row["claim_uid"] for row in good])
    return tuple(
        RunView(
            job=row["job__uid"],
            owner=row["job__created_by__uid"],
            places=places[row["claim_uid"]],
            ended_at=row["ended_at"],
            failed=_blame(row) if row["state"] == AttemptState.FAILED else None,
        )
        for row in (*crashed, *good)
        if row["claim_uid"] in places
    )


def _rows(attempts: QuerySet[Attempt]) -> Iterable[Mapping[str, Any]]:
    return attempts.values(
        "uid",
        "state",
        "exit_cause",
        "ended_at",
        "claim_uid",
        "job_id",
        "job__uid",
        "job__created_by__uid",
    )


def _places(claims: Collection[str]) -> dict[str, Places]:
    """Claim → node → the cards that it held there, released or not."""
    rows = Allocation.objects.filter(claim__uid__in=claims).order_by("card__uid")
    held: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for claim, node, card in rows.values_list("claim__uid", "node__uid", "card__uid"):
        held[claim][node].append(card)
    return {
        claim: {node: tuple(cards) for node, cards in nodes.items()}
        for claim, nodes in held.items()
    }


def _blame(row: Mapping[str, Any]) -> Blame:
    if row["exit_cause"] in _OF_THE_PROGRAM:
        return Blame.PROGRAM
    return _blame_of_log(row["uid"])


@lru_cache(maxsize=4096)
def _blame_of_log(uid: str) -> Blame:
    """By what an ended attempt left in its log, which does not change any more."""
    tail = Attempt.objects.filter(uid=uid).values_list("log_tail", flat=True).first()
    crash = signature(tail or "")
    return crash.blame if crash else Blame.UNCLEAR
