"""Samples of the metrics of cards for rules: only those of cards that could fire are read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Aggregate, F, Max, Min, Q
from django.db.models.functions import TruncMinute

from apps.fleet.models import Card
from apps.telemetry.models import CardHistory, CardMetrics
from controlplane.domain.health.rules import (
    GAP,
    MetricCondition,
    MetricSample,
    MetricTransform,
    dry_run_condition,
)
from controlplane.domain.rules import Comparison, Condition, RuleFiring
from controlplane.domain.telemetry import Metric

#: Maximum number of cards that one rule evaluates in a run.
MOST = 2_000
#: Longest time range of a dry run, and the maximum number of cards that it shows.
LONGEST_TRIAL, MOST_SHOWN = timedelta(days=3), 200

_LOOKUPS: Mapping[Comparison, str] = {
    Comparison.ABOVE: "gt",
    Comparison.AT_LEAST: "gte",
    Comparison.BELOW: "lt",
    Comparison.AT_MOST: "lte",
    Comparison.EQUAL: "exact",
}


def threshold_filter(column: str, condition: Condition) -> Q:
    """Rows of which the column meets the condition."""
    return Q(**{f"{column}__{_LOOKUPS[condition.op]}": condition.threshold})


def metric_samples_by_card(
    cards: Collection[int],
    metric: Metric,
    *,
    since: datetime,
    at: datetime,
    each_minute: type[Aggregate] | None = None,
) -> dict[int, list[MetricSample]]:
    """The metric's measurements of each of these cards, oldest first; or one aggregate of them for each minute."""
    rows = CardHistory.objects.filter(card__in=cards, at__gte=since, at__lte=at)
    rows = rows.exclude(**{metric: None})
    if each_minute is None:
        samples = rows.order_by("card_id", "at").values_list("card_id", "at", metric)
    else:
        minutes = rows.annotate(minute=TruncMinute("at")).values("card_id", "minute")
        worst = minutes.annotate(value=each_minute(metric)).order_by("card_id", "minute")
        samples = worst.values_list("card_id", "minute", "value")
    series: dict[int, list[MetricSample]] = defaultdict(list)
    for card, then, value in samples:
        series[card].append(MetricSample(at=then, value=value))
    return series


def candidate_cards(condition: MetricCondition, *, at: datetime) -> list[int]:
    """Primary keys of whole cards of which the condition may hold now, at most ``MOST``."""
    if condition.how is MetricTransform.VALUE:
        fresh = CardMetrics.objects.filter(
            threshold_filter(condition.metric, condition),
            _whole_card_filter(condition),
            at__gte=at - GAP,
        )
        return list(fresh.order_by("pk").values_list("pk", flat=True)[:MOST])
    return _cards_measured_between(condition, since=at - condition.within - condition.lasts, at=at)


def longest_lookback(condition: MetricCondition) -> timedelta:
    """How far back measurements can affect the result."""
    back = timedelta() if condition.how is MetricTransform.VALUE else condition.within
    return back + condition.lasts + GAP


def _whole_card_filter(condition: MetricCondition) -> Q:
    whole = Q(card__parent=None, card__removed_at=None)
    return whole & Q(card__chip__in=condition.chips) if condition.chips else whole


def _cards_measured_between(
    condition: MetricCondition, *, since: datetime, at: datetime
) -> list[int]:
    """Where something has to grow, those where anything changed; otherwise all that were measured."""
    metric = condition.metric.value
    rows = CardHistory.objects.filter(
        _whole_card_filter(condition), at__gte=since, at__lte=at
    ).order_by()
    ends = rows.values("card").annotate(low=Min(metric), high=Max(metric)).exclude(high=None)
    if condition.op.upwards and condition.threshold >= 0:
        ends = ends.filter(high__gt=F("low"))
    return list(ends.order_by("card").values_list("card", flat=True)[:MOST])


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthRuleTrial:
    """When a rule would have fired on one card."""

    card: Card
    firings: tuple[RuleFiring, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthRuleTrials:
    since: datetime
    #: Number of evaluated cards that could have fired; incomplete if it is ``MOST_SHOWN``.
    cards: int
    times: int
    #: Those with firings.
    trials: Sequence[HealthRuleTrial]


def health_rule_trial(
    condition: MetricCondition, *, back: timedelta, at: datetime
) -> HealthRuleTrials:
    """Evaluate the rule on stored metrics of the recent past."""
    since = at - min(back, LONGEST_TRIAL)
    if condition.how is MetricTransform.VALUE:
        held = CardHistory.objects.filter(
            threshold_filter(condition.metric, condition),
            _whole_card_filter(condition),
            at__gte=since,
        )
        cards = list(held.order_by("card").values_list("card", flat=True).distinct()[:MOST_SHOWN])
    else:
        cards = _cards_measured_between(condition, since=since, at=at)[:MOST_SHOWN]
    series = metric_samples_by_card(cards, condition.metric, since=since, at=at)
    rows = Card.objects.select_related("node__cluster").in_bulk(cards)
    found = [
        HealthRuleTrial(card=rows[card], firings=firings)
        for card in cards
        if (firings := dry_run_condition(condition, series.get(card, ())))
    ]
    times = sum(len(trial.firings) for trial in found)
    return HealthRuleTrials(since=since, cards=len(cards), times=times, trials=tuple(found))
