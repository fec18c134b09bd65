"""Allocated but idle cards: their workloads, since when, and the cost in card-hours.

A card is idle once it has been allocated and measured below ``IDLE`` percent for ``IDLE_FOR``. Its last activity
is looked up where that is cheap: in the last hours of the history, and further back in hourly aggregates.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from apps.accounts import selectors as accounts
from apps.accounts.models import Team
from apps.quotas.models import Queue
from apps.quotas.selectors.queue_visibility import queue_visibility_of
from apps.quotas.selectors.topology import allocated_claims
from apps.telemetry.selectors.metric_sources import FRESH, IDLE
from controlplane.persistence.transactions import fetch_rows

IDLE_FOR = timedelta(minutes=30)
#: Maximum time range.
LOOKBACK = timedelta(days=30)

_IDLE = """
    SELECT quiet.claim_id, quiet.cluster, quiet.node, quiet.index, quiet.card, quiet.chip,
           greatest(quiet.allocated_at, known.first,
                    coalesce(lately.at, within.at, sums.hour + interval '1 hour')) AS since
      FROM (SELECT held.claim_id, held.allocated_at, cluster.name AS cluster, node.name AS node,
                   card.index, card.uid AS card, card.chip, card.id AS card_id
              FROM quotas_allocation AS held
              JOIN telemetry_cardfigures AS figures ON figures.card_id = held.card_id
              JOIN fleet_card AS card ON card.id = held.card_id
              JOIN fleet_node AS node ON node.id = card.node_id
              JOIN fleet_cluster AS cluster ON cluster.id = node.cluster_id
             WHERE held.released_at IS NULL AND held.allocated_at <= %(long_ago)s
               AND figures.at >= %(fresh)s AND figures.utilization < %(idle)s) AS quiet
      LEFT JOIN LATERAL (
           SELECT at FROM telemetry_history
            WHERE card_id = quiet.card_id AND at >= %(lately)s AND at <= %(at)s
              AND utilization >= %(idle)s
            ORDER BY at DESC LIMIT 1) AS lately ON true
      LEFT JOIN LATERAL (
           SELECT max(hour) AS hour FROM telemetry_cardhour
            WHERE card_id = quiet.card_id AND hour >= %(look_back)s AND hour < %(lately)s
              AND utilization_max >= %(idle)s) AS sums ON lately.at IS NULL
      LEFT JOIN LATERAL (
           SELECT max(at) AS at FROM telemetry_history
            WHERE card_id = quiet.card_id AND at >= sums.hour AND at < sums.hour + interval '1 hour'
              AND utilization >= %(idle)s) AS within ON lately.at IS NULL
      LEFT JOIN LATERAL (
           SELECT least((SELECT min(at) FROM telemetry_history WHERE card_id = quiet.card_id),
                        (SELECT min(hour) FROM telemetry_cardhour WHERE card_id = quiet.card_id
                                                                     AND hour >= %(look_back)s)
                       ) AS first) AS known ON true
     WHERE known.first IS NOT NULL
     ORDER BY quiet.cluster, quiet.node, quiet.index
"""


class IdleCard(NamedTuple):
    """A card that is held and has not worked since."""

    claim: int
    cluster: str
    node: str
    #: Its place in the node.
    number: int
    #: Its uid.
    card: str
    chip: str
    since: datetime


def idle_cards(*, at: datetime) -> Sequence[IdleCard]:
    """Every card that is wasted, by cluster, node and index."""
    hour = at.replace(minute=0, second=0, microsecond=0)
    asked: dict[str, datetime | float] = {
        "at": at,
        "fresh": at - FRESH,
        "long_ago": at - IDLE_FOR,
        # The hour before may not be summed up yet.
        "lately": hour - timedelta(hours=1),
        "look_back": hour - LOOKBACK,
        "idle": IDLE,
    }
    found = [IdleCard(*row) for row in fetch_rows(_IDLE, asked)]
    return [card for card in found if card.since <= at - IDLE_FOR]


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleAllocationTotals:
    """Of the whole fleet."""

    #: Wasted cards by cluster and chip.
    cards: Mapping[tuple[str, str], int]
    #: Total idle hours.
    card_hours: float

    @property
    def total(self) -> int:
        return sum(self.cards.values())


def idle_allocation_totals(*, at: datetime) -> IdleAllocationTotals:
    """How much is wasted where."""
    found = idle_cards(at=at)
    return IdleAllocationTotals(
        cards=Counter((card.cluster, card.chip) for card in found),
        card_hours=sum((at - card.since).total_seconds() for card in found) / 3600,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleAllocationRow:
    """A claim that wastes some of its cards."""

    #: ``job`` or ``deployment``; uid and name are empty if they are not visible to the reader.
    kind: str
    uid: str
    name: str
    team: str
    queue: str
    chips: tuple[str, ...]
    clusters: tuple[str, ...]
    #: Its cards that are idle, and all that it holds.
    idle: Sequence[IdleCard]
    held: int
    #: Since when the first of them has been idle.
    since: datetime
    card_hours: float


def idle_allocation_rows(
    user: accounts.RequestUser, *, at: datetime
) -> Sequence[IdleAllocationRow]:
    """All claims with idle cards by idle card-hours, as far as they are visible to the user."""
    by_claim: dict[int, list[IdleCard]] = {}
    for card in idle_cards(at=at):
        by_claim.setdefault(card.claim, []).append(card)
    if not by_claim:
        return []
    queues = {queue.pk: queue for queue in Queue.objects.order_by("name")}
    visibility = queue_visibility_of(user, queues.values())
    teams = dict(Team.objects.values_list("pk", "name"))
    rows = []
    for key, claim in allocated_claims(by_claim).items():
        cards = by_claim[key]
        named = (
            visibility.everything
            or claim.team in visibility.teams
            or claim.queue in visibility.managed
        )
        rows.append(
            IdleAllocationRow(
                team=teams[claim.team],
                queue=queues[claim.queue].name,
                kind=claim.work_kind,
                uid=claim.work_uid if named else "",
                name=claim.work_name if named else "",
                chips=tuple(sorted({card.chip for card in cards})),
                clusters=tuple(sorted({card.cluster for card in cards})),
                idle=cards,
                held=claim.cards,
                since=min(card.since for card in cards),
                card_hours=sum((at - card.since).total_seconds() for card in cards) / 3600,
            )
        )
    return sorted(rows, key=lambda row: (-row.card_hours, row.since))
