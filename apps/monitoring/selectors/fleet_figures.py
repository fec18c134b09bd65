"""How the fleet does, in counts: by cluster and chip, in one statement whatever its size."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from django.db import connection
from django.db.models import Count, Q

from apps.fleet.models import Node
from apps.monitoring.models import CardFigures, Source

#: Older figures say nothing of now.
FRESH = timedelta(seconds=60)
#: Percent of utilization from which on a card is at work, and below which it is idle.
BUSY, IDLE = 20.0, 5.0
#: A source that has missed so many readings is late.
MISSED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Cards by what matters about them. Each is usable, isolated, unknown or takes no new work."""

    total: int = 0
    usable: int = 0
    isolated: int = 0
    unknown: int = 0
    #: By its own state, or because its node is not ready or cordoned.
    no_new_work: int = 0
    #: A claim holds it, whatever its state.
    allocated: int = 0
    #: Measured now, and at ``BUSY`` percent at least.
    busy: int = 0
    #: Measured now; measured, but not lately. The rest was never measured.
    fresh: int = 0
    stale: int = 0
    #: Held, and not measured now: whether these work is not known.
    unwatched: int = 0

    @property
    def unusable(self) -> int:
        """Cards that get no new work, for whatever reason."""
        return self.total - self.usable

    @property
    def unmeasured(self) -> int:
        """Cards of which nobody knows how busy they are now."""
        return self.total - self.fresh


class Pool(NamedTuple):
    """The cards of one chip in one cluster."""

    cluster: str
    cluster_uid: str
    chip: str
    counts: Counts


_POOLS = """
    SELECT cluster.name, cluster.uid, card.chip,
           count(*),
           count(*) FILTER (WHERE card.state = 'usable' AND node.ready AND NOT node.cordoned),
           count(*) FILTER (WHERE card.state = 'isolated'),
           count(*) FILTER (WHERE card.state = 'unknown'),
           count(*) FILTER (WHERE card.state = 'no_new_work'
                               OR card.state = 'usable' AND (node.cordoned OR NOT node.ready)),
           count(held.id),
           count(*) FILTER (WHERE figures.at >= %(since)s AND figures.utilization >= %(busy)s),
           count(*) FILTER (WHERE figures.at >= %(since)s),
           count(*) FILTER (WHERE figures.at < %(since)s),
           count(held.id) FILTER (WHERE figures.at IS NULL OR figures.at < %(since)s)
      FROM fleet_card AS card
      JOIN fleet_node AS node ON node.id = card.node_id AND node.removed_at IS NULL
      JOIN fleet_cluster AS cluster ON cluster.id = node.cluster_id AND cluster.removed_at IS NULL
      LEFT JOIN quotas_allocation AS held ON held.card_id = card.id AND held.released_at IS NULL
      LEFT JOIN monitoring_cardfigures AS figures ON figures.card_id = card.id
     WHERE card.removed_at IS NULL AND card.parent_id IS NULL
     GROUP BY cluster.name, cluster.uid, card.chip
     ORDER BY cluster.name, card.chip
"""


def pools(*, at: datetime) -> Sequence[Pool]:
    """All cards, by cluster and chip."""
    with connection.cursor() as cursor:
        cursor.execute(_POOLS, {"since": at - FRESH, "busy": BUSY})
        rows = cursor.fetchall()
    names = [one.name for one in fields(Counts)]
    return [
        Pool(
            cluster=row[0],
            cluster_uid=row[1],
            chip=row[2],
            counts=Counts(**dict(zip(names, row[3:], strict=True))),
        )
        for row in rows
    ]


def together(counted: Iterable[Counts]) -> Counts:
    """All of them summed."""
    found = tuple(counted)
    return Counts(
        **{one.name: sum(getattr(each, one.name) for each in found) for one in fields(Counts)}
    )


def figures_of_node(node: Node) -> Sequence[CardFigures]:
    """The newest figures of each of its cards that was ever measured."""
    return list(CardFigures.objects.filter(card__node=node, card__removed_at=None))


class Hearing(StrEnum):
    """How a source of figures does."""

    WELL = "well"
    #: The last reading failed, or so much is silent that it must be the source.
    TROUBLED = "troubled"
    #: It has missed several readings.
    LATE = "late"
    #: Nothing was ever read.
    UNSEEN = "unseen"
    PAUSED = "paused"


class Heard(NamedTuple):
    source: Source
    how: Hearing
    #: Cards whose figures of now came from it.
    measured: int


def sources_heard(*, at: datetime) -> Sequence[Heard]:
    """Every source of a cluster that is there, with how it does, by name."""
    fresh = Count("figures", filter=Q(figures__at__gte=at - FRESH))
    rows = Source.objects.filter(cluster__removed_at=None).annotate(measured=fresh)
    return [
        Heard(source, _hearing(source, at=at), source.measured)
        for source in rows.select_related("cluster").defer("credential").order_by("name")
    ]


def source_heard(source: Source, *, at: datetime) -> Heard:
    """How one of them does."""
    measured = CardFigures.objects.filter(source=source, at__gte=at - FRESH).count()
    return Heard(source, _hearing(source, at=at), measured)


def _hearing(source: Source, *, at: datetime) -> Hearing:
    if not source.enabled:
        return Hearing.PAUSED
    if source.trouble or source.stalled:
        return Hearing.TROUBLED
    if source.read_at is None:
        return Hearing.UNSEEN
    late = at - source.read_at > MISSED * timedelta(seconds=max(source.every, 5))
    return Hearing.LATE if late else Hearing.WELL
