"""Figures of cards, the sources that they come from, and faults beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from apps.fleet.models import Card, Cluster, Node
from apps.monitoring.models import Fault
from apps.telemetry.models import CardHistory, CardMetrics, Source
from controlplane.domain.common.resources import GIB
from controlplane.domain.health.faults import FaultLevel, SignalOrigin

#: What a card at work shows.
AT_WORK: Mapping[str, float] = {
    "utilization": 83.0,
    "memory_used": 61.0 * GIB,
    "memory_total": 80.0 * GIB,
    "temperature": 66.0,
    "power": 512.0,
    "clock": 1.755e9,
    "ecc_uncorrected": 0.0,
    "ecc_corrected": 3.0,
    "link_errors": 0.0,
}


def source(cluster: Cluster, *, name: str = "exporters", **values: Any) -> Source:
    """One that was read just now, unless told otherwise."""
    at = timezone.now()
    defaults = {"kind": "exporter", "tried_at": at, "read_at": at, "readings": 8}
    return Source.objects.create(cluster=cluster, name=name, **{**defaults, **values})


def card_metrics(
    cards: Iterable[Card], *, at: datetime | None = None, **values: float | None
) -> list[CardMetrics]:
    """The newest figures of each: of a card at work, with what is given instead; measured now or at ``at``."""
    moment = at or timezone.now()
    measured = {**AT_WORK, **values}
    return CardMetrics.objects.bulk_create(
        CardMetrics(card=card, at=moment, received_at=moment, **measured) for card in cards
    )


def history(
    card: Card,
    *,
    since: datetime,
    until: datetime,
    every: timedelta = timedelta(minutes=1),
    measured: Callable[[datetime], Mapping[str, float]] = lambda _at: AT_WORK,
) -> None:
    """What was measured of it between two moments."""
    count = int((until - since) / every) + 1
    moments = [since + number * every for number in range(count)]
    CardHistory.objects.bulk_create(CardHistory(card=card, at=at, **measured(at)) for at in moments)


def fault(place: Card | Node, *, code: str = "79", **values: Any) -> Fault:
    """One of level 6 that an exporter told of a minute ago, unless told otherwise."""
    at = values.pop("at", None) or timezone.now() - timedelta(minutes=1)
    card = place if isinstance(place, Card) else None
    defaults = {
        "origin": SignalOrigin.EXPORTER,
        "vendor": "nvidia",
        "level": FaultLevel.ISOLATE,
        "began_at": at,
        "reported_at": at,
        "noticed_at": at,
    }
    node = place.node if isinstance(place, Card) else place
    return Fault.objects.create(node=node, card=card, code=code, **{**defaults, **values})
