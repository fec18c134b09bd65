"""Counts of all kinds of objects, in few queries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import CharField, Count, F, QuerySet, Value
from django.db.models.functions import Now

from apps.fleet.models import Card, Cluster
from apps.jobs.models import Attempt, Job
from apps.quotas.models import Claim
from apps.serving.models import Deployment, Replica
from controlplane.domain.quotas.claims import ClaimState
from controlplane.outbox import messages
from controlplane.outbox.messages import OutboxBacklog
from controlplane.persistence.transactions import fetch_rows

#: ``(value, value, …)`` → how many.
Tally = Mapping[tuple[str, ...], int]

_COUNTED: tuple[tuple[str, QuerySet[Any]], ...] = (
    ("jobs", Job.objects.all()),
    ("attempts", Attempt.objects.all()),
    ("claims", Claim.objects.all()),
    ("deployments", Deployment.objects.filter(deleted_at=None)),
    ("replicas", Replica.objects.all()),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectCounts:
    #: Kind → ``(state,)`` → how many.
    by_state: Mapping[str, Tally]
    #: ``(chip, state)`` → how many.
    cards: Tally
    #: ``(queue,)`` → pending claims.
    waiting_claims: Tally
    outbox: OutboxBacklog
    #: ``(state,)`` of this database's connections → how many.
    connections: Tally
    #: ``(cluster,)`` → seconds since the connection that watches it last proved itself, for those that ever did.
    cluster_silence: Mapping[tuple[str, ...], float]


def current_object_counts() -> ObjectCounts:
    """Everything in four queries in addition to the outbox's own.

    :raises django.db.Error: if the database does not respond.
    """
    by_state, cards, waiting = _count_objects()
    return ObjectCounts(
        by_state=by_state,
        cards=cards,
        waiting_claims=waiting,
        outbox=messages.outbox_backlog(),
        connections=_count_connections(),
        cluster_silence=_seconds_since_contact(),
    )


def _seconds_since_contact() -> dict[tuple[str, ...], float]:
    watched = Cluster.objects.exclude(reachable_at=None).annotate(silence=Now() - F("reachable_at"))
    return {
        (name,): max(0.0, silence.total_seconds())
        for name, silence in watched.values_list("name", "silence")
    }


def _count_objects() -> tuple[dict[str, dict[tuple[str, ...], int]], Tally, Tally]:
    parts = [_count_by_state(rows, kind, state=F("state")) for kind, rows in _COUNTED]
    parts.append(_count_by_state(Card.objects.all(), "cards", state=F("state"), by=F("chip")))
    waiting = Claim.objects.filter(state=ClaimState.PENDING)
    parts.append(_count_by_state(waiting, "waiting", by=F("queue__name")))
    by_state: dict[str, dict[tuple[str, ...], int]] = {kind: {} for kind, _ in _COUNTED}
    cards: dict[tuple[str, ...], int] = {}
    queues: dict[tuple[str, ...], int] = {}
    for kind, by, state, amount in parts[0].union(*parts[1:], all=True):
        if kind == "cards":
            cards[by, state] = amount
        elif kind == "waiting":
            queues[(by,)] = amount
        else:
            by_state[kind][(state,)] = amount
    return by_state, cards, queues


_NONE = Value("", output_field=CharField())


def _count_by_state(
    rows: QuerySet[Any], kind: str, *, state: F | Value = _NONE, by: F | Value = _NONE
) -> QuerySet[Any, Any]:
    """``(kind, by, state, how many)`` for each group."""
    grouped: QuerySet[Any, Any] = (
        rows.order_by()
        .annotate(counted=Value(kind, output_field=CharField()), counted_by=by, counted_state=state)
        .values_list("counted", "counted_by", "counted_state")
        .annotate(amount=Count("pk"))
    )
    return grouped


def _count_connections() -> Tally:
    rows = fetch_rows(
        "SELECT coalesce(state, 'unknown'), count(*) FROM pg_stat_activity"
        " WHERE datname = current_database() GROUP BY 1"
    )
    return {(state,): amount for state, amount in rows}
