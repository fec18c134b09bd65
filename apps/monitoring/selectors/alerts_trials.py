"""What a rule says now, and what it would have said in the last day where there is a history of that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby

from django.db import connection
from django.db.models import Q

from apps.fleet.models import Card
from apps.monitoring.models import CardFigures, CardHour, Fault
from apps.monitoring.selectors.alerts_samples import samples_of
from controlplane.domain.alerts.rules import MEASURES, Op, Rule, Topic, all_fit
from controlplane.domain.alerts.trials import firings

BACK = timedelta(days=1)
#: Of more cards that crossed the threshold, so many are looked at minute by minute.
MOST_CARDS = 50
_UPWARDS = {Op.ABOVE: "gt", Op.AT_LEAST: "gte"}
_DOWNWARDS = {Op.BELOW: "lt", Op.AT_MOST: "lte"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What a rule would do. Its ``lasts`` counts for the past and not for now."""

    #: On how many things it holds now.
    now: int
    #: How often it would have fired, on how many things; None where no history is kept of what it measures.
    times: int | None = None
    things: int = 0
    #: More crossed the threshold than were looked at: it is at least that often.
    cut: bool = False


def trial_of(rule: Rule, *, at: datetime) -> Trial:
    now = sum(rule.holds(sample) is True for sample in samples_of(rule, at=at))
    topic = MEASURES[rule.measure].topic
    if topic is Topic.FAULTS:
        times = _fault_times(rule, at=at)
        return Trial(now=now, times=sum(times), things=len(times))
    if topic is Topic.CARDS and rule.op is not Op.EQUAL:
        cards = _crossed(rule, at=at)
        times = _card_times(rule, cards[:MOST_CARDS], at=at)
        return Trial(now=now, times=sum(times), things=len(times), cut=len(cards) > MOST_CARDS)
    return Trial(now=now)


def _fault_times(rule: Rule, *, at: datetime) -> list[int]:
    """How often on each card or node that had such a fault for long enough."""
    rows = Fault.objects.filter(Q(ended_at=None) | Q(ended_at__gt=at - BACK))
    counts: dict[tuple[int, int | None], int] = {}
    for fault in rows.select_related("node__cluster", "card"):
        labels = {
            "cluster": fault.node.cluster.name,
            "node": fault.node.name,
            "card": "" if fault.card is None else str(fault.card.index),
            "vendor": fault.vendor,
            "origin": fault.origin,
            "code": fault.code,
        }
        stood = (fault.ended_at or at) - fault.began_at
        long_enough = stood >= rule.lasts and rule.op.holds(fault.level, rule.threshold)
        if long_enough and all_fit(rule.where, labels):
            key = (fault.node_id, fault.card_id)
            counts[key] = counts.get(key, 0) + 1
    return list(counts.values())


def _crossed(rule: Rule, *, at: datetime) -> list[int]:
    """Cards that were beyond the threshold at some time, as hourly sums and the newest figures tell."""
    metric = rule.measure.partition(".")[2]
    suffix = "max" if rule.op in _UPWARDS else "min"
    lookup = {**_UPWARDS, **_DOWNWARDS}[rule.op]
    known = {field.name for field in CardHour._meta.get_fields()}
    found = CardFigures.objects.filter(
        **{f"{metric}__{lookup}": rule.threshold}, at__gt=at - BACK
    ).values_list("card_id", flat=True)
    keys = set(found)
    if f"{metric}_{suffix}" in known:
        hours = CardHour.objects.filter(
            **{f"{metric}_{suffix}__{lookup}": rule.threshold}, hour__gt=at - BACK
        )
        keys |= set(hours.values_list("card_id", flat=True).distinct())
    cards = Card.objects.filter(pk__in=keys).select_related("node__cluster").order_by("pk")
    return [card.pk for card in cards if all_fit(rule.where, _labels(card))]


def _labels(card: Card) -> dict[str, str]:
    return {
        "cluster": card.node.cluster.name,
        "node": card.node.name,
        "card": str(card.index),
        "chip": card.chip,
    }


def _card_times(rule: Rule, cards: Iterable[int], *, at: datetime) -> list[int]:
    times = [len(firings(rule, values)) for values in _minutes(rule, list(cards), at=at)]
    return [count for count in times if count]


def _minutes(
    rule: Rule, cards: list[int], *, at: datetime
) -> Iterator[list[tuple[datetime, float | None]]]:
    """The worst value of each minute of each card, in the order of time."""
    if not cards:
        return
    metric = connection.ops.quote_name(rule.measure.partition(".")[2])
    worst = "max" if rule.op in _UPWARDS else "min"
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            SELECT card_id, date_bin('1 minute', at, 'epoch') AS minute, {worst}({metric})
              FROM monitoring_history
             WHERE card_id = ANY(%s) AND at > %s AND at <= %s
             GROUP BY card_id, minute ORDER BY card_id, minute
            """,  # noqa: S608 - the names come from the product's own vocabulary
            [cards, at - BACK, at],
        )
        rows = cursor.fetchall()
    for _, group in groupby(rows, key=lambda row: row[0]):
        yield [(minute, value) for _, minute, value in group]
