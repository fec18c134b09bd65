"""The samples that alert rules and health rules compare, and dry runs of a rule against them.

Samples of alert rules are returned by measure, if the rule may match them or their value is unknown; a missing
sample does not match. Large tables are filtered by the database: of the metrics of cards, only those of cards
that could fire are read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Aggregate, Count, F, Max, Min, Q
from django.db.models.functions import TruncMinute
from django.urls import reverse

from apps.fleet.models import Card, Cluster
from apps.monitoring.models import Decision, Fault
from apps.monitoring.selectors.self_monitoring import current_controllers, monitored_disks
from apps.quotas.models import Claim
from apps.quotas.selectors.claims import PENDING_SINCE
from apps.serving.models import GatewayCall, Route
from apps.telemetry.models import CardHistory, CardHour, CardMetrics, Source
from controlplane.domain.alerts.rules import (
    MEASURES,
    AlertRuleSpec,
    AlertSample,
    MeasureTopic,
    all_matchers_match,
)
from controlplane.domain.common.accelerators import CardState
from controlplane.domain.health.rules import (
    GAP,
    MetricCondition,
    MetricSample,
    MetricTransform,
    dry_run_condition,
)
from controlplane.domain.quotas.claims import ClaimState
from controlplane.domain.rules.conditions import Comparison, Condition, RuleFiring, dry_run
from controlplane.domain.telemetry.metrics import Metric
from controlplane.outbox import messages

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


#: Older metrics do not describe the current state.
FRESH = timedelta(minutes=1)
HELD_BACK_WITHIN = timedelta(hours=1)
CALLS_WITHIN = timedelta(minutes=10)
#: With fewer calls, a failure share is meaningless.
FEWEST_CALLS = 20


def rule_alert_samples(rule: AlertRuleSpec, *, at: datetime) -> tuple[AlertSample, ...]:
    """Samples that match the rule's matchers and may match its condition."""
    read = _READERS[MEASURES[rule.measure].topic]
    return tuple(
        sample for sample in read(rule, at) if all_matchers_match(rule.where, sample.labels)
    )


def _measure_suffix(rule: AlertRuleSpec) -> str:
    return rule.measure.partition(".")[2]


def _card_samples(rule: AlertRuleSpec, at: datetime) -> Iterable[AlertSample]:
    metric = _measure_suffix(rule)
    stale = Q(at__lt=at - FRESH)
    holds = threshold_filter(metric, rule)
    rows = CardMetrics.objects.filter(holds | stale, card__removed_at=None).exclude(
        **{f"{metric}__isnull": True}
    )
    for cluster, node, index, chip, value, measured_at, uid in rows.values_list(
        "card__node__cluster__name",
        "card__node__name",
        "card__index",
        "card__chip",
        metric,
        "at",
        "card__node__cluster__uid",
    ):
        yield AlertSample(
            labels={"cluster": cluster, "node": node, "card": str(index), "chip": chip},
            value=value if measured_at >= at - FRESH else None,
            href=reverse("node", args=[uid, node]),
        )


def _fault_samples(rule: AlertRuleSpec, at: datetime) -> Iterable[AlertSample]:
    del at
    holds = threshold_filter("level", rule)
    rows = Fault.objects.filter(holds, ended_at=None).select_related("node__cluster", "card")
    for fault in rows:
        href = reverse("node", args=[fault.node.cluster.uid, fault.node.name])
        yield AlertSample(labels=_fault_labels(fault), value=float(fault.level), href=href)


def _fault_labels(fault: Fault) -> dict[str, str]:
    return {
        "cluster": fault.node.cluster.name,
        "node": fault.node.name,
        "card": "" if fault.card is None else str(fault.card.index),
        "vendor": fault.vendor,
        "origin": fault.origin,
        "code": fault.code,
    }


_STATES = {"unknown_share": CardState.UNKNOWN, "isolated_share": CardState.ISOLATED}


def _fleet_samples(rule: AlertRuleSpec, at: datetime) -> Iterable[AlertSample]:
    del at
    state = _STATES[_measure_suffix(rule)]
    counts = (
        Card.objects.filter(parent=None)
        .order_by()
        .values_list("node__cluster__name", "node__cluster__uid", "chip")
        .annotate(cards=Count("pk"), found=Count("pk", filter=Q(state=state)))
    )
    for cluster, uid, chip, cards, found in counts:
        labels = {"cluster": cluster, "chip": chip}
        yield AlertSample(
            labels=labels, value=100 * found / cards, href=reverse("cluster", args=[uid])
        )


def _source_samples(rule: AlertRuleSpec, at: datetime) -> Iterable[AlertSample]:
    del rule
    for source in Source.objects.filter(enabled=True).select_related("cluster"):
        age = at - (source.read_at or source.created_at)
        yield AlertSample(
            labels={"cluster": source.cluster.name, "source": source.name},
            value=max(age.total_seconds(), 0.0),
            href=reverse("fleet"),
        )


def _decision_samples(rule: AlertRuleSpec, at: datetime) -> Iterable[AlertSample]:
    del rule
    held_back = (
        Decision.objects.filter(at__gt=at - HELD_BACK_WITHIN, outcome=Decision.Outcome.HELD_BACK)
        .order_by()
        .values_list("node__cluster__name", "node__cluster__uid")
        .annotate(decisions=Count("pk"))
    )
    for cluster, uid, count in held_back:
        href = reverse("cluster", args=[uid])
        yield AlertSample(labels={"cluster": cluster}, value=float(count), href=href)


def _cluster_samples(rule: AlertRuleSpec, at: datetime) -> Iterable[AlertSample]:
    del rule
    for cluster in Cluster.objects.all():
        last_seen_at = max(
            filter(None, (cluster.last_seen_at, cluster.reachable_at, cluster.created_at))
        )
        yield AlertSample(
            labels={"cluster": cluster.name},
            value=max((at - last_seen_at).total_seconds(), 0.0),
            href=reverse("cluster", args=[cluster.uid]),
        )


def _controller_samples(rule: AlertRuleSpec, at: datetime) -> Iterable[AlertSample]:
    del at
    by_lag = _measure_suffix(rule) == "lag"
    for controller in current_controllers().all:
        lag = None if controller.lag is None else controller.lag.total_seconds()
        value = lag if by_lag else float(controller.unhealthy)
        yield AlertSample(
            labels={"controller": controller.name}, value=value, href=reverse("status")
        )


def _self_monitoring_alert_samples(rule: AlertRuleSpec, at: datetime) -> Iterable[AlertSample]:
    del at
    href = reverse("status")
    if _measure_suffix(rule) == "outbox_age":
        age = messages.outbox_backlog().age.total_seconds()
        yield AlertSample(labels={}, value=age, href=href)
        return
    for disk in monitored_disks():
        yield AlertSample(labels={"disk": disk.name}, value=100 * disk.free / disk.size, href=href)


def _queue_samples(rule: AlertRuleSpec, at: datetime) -> Iterable[AlertSample]:
    waiting = (
        Claim.objects.filter(state=ClaimState.PENDING)
        .order_by()
        .values_list("queue__name", "queue__uid")
        .annotate(claims=Count("pk"), oldest=Min(PENDING_SINCE))
    )
    for queue, uid, count, since in waiting:
        value = float(count) if _measure_suffix(rule) == "waiting" else (at - since).total_seconds()
        yield AlertSample(labels={"queue": queue}, value=value, href=reverse("queue", args=[uid]))


def _deployment_samples(rule: AlertRuleSpec, at: datetime) -> Iterable[AlertSample]:
    del rule
    routes = {route.name: route for route in Route.objects.select_related("deployment__team")}
    # By route, for that is what calls are indexed by.
    calls = (
        GatewayCall.objects.filter(route__in=routes, at__gt=at - CALLS_WITHIN)
        .order_by()
        .values_list("route")
        .annotate(total=Count("pk"), failed=Count("pk", filter=Q(status__gte=500)))
    )
    for name, total, failed in calls:
        if total < FEWEST_CALLS:
            continue
        deployment = routes[name].deployment
        yield AlertSample(
            labels={"deployment": deployment.name, "team": deployment.team.name},
            value=100 * failed / total,
            href=reverse("deployment", args=[deployment.uid]),
        )


_READERS: Mapping[MeasureTopic, Callable[[AlertRuleSpec, datetime], Iterable[AlertSample]]] = {
    MeasureTopic.CARDS: _card_samples,
    MeasureTopic.FAULTS: _fault_samples,
    MeasureTopic.FLEET: _fleet_samples,
    MeasureTopic.SOURCES: _source_samples,
    MeasureTopic.DECISIONS: _decision_samples,
    MeasureTopic.CLUSTERS: _cluster_samples,
    MeasureTopic.CONTROLLERS: _controller_samples,
    MeasureTopic.PRODUCT: _self_monitoring_alert_samples,
    MeasureTopic.QUEUES: _queue_samples,
    MeasureTopic.DEPLOYMENTS: _deployment_samples,
}


BACK = timedelta(days=1)
#: Number of cards above the threshold whose values are evaluated by minute.
MOST_CARDS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertRuleTrial:
    """What a rule would do. Its ``lasts`` counts for the past and not for now."""

    #: On how many things it holds now.
    now: int
    #: How often it would have fired, on how many things; None where no history is kept of what it measures.
    times: int | None = None
    things: int = 0
    #: More cards exceeded the threshold than were evaluated: a lower bound.
    cut: bool = False


def alert_rule_dry_run(rule: AlertRuleSpec, *, at: datetime) -> AlertRuleTrial:
    now = sum(rule.holds(sample.value) is True for sample in rule_alert_samples(rule, at=at))
    topic = MEASURES[rule.measure].topic
    if topic is MeasureTopic.FAULTS:
        times = _firing_counts_of_faults(rule, at=at)
        return AlertRuleTrial(now=now, times=sum(times), things=len(times))
    if topic is MeasureTopic.CARDS and rule.op is not Comparison.EQUAL:
        cards = _cards_beyond_threshold(rule, at=at)
        times = _firing_counts_of_cards(rule, cards[:MOST_CARDS], at=at)
        return AlertRuleTrial(
            now=now, times=sum(times), things=len(times), cut=len(cards) > MOST_CARDS
        )
    return AlertRuleTrial(now=now)


def _firing_counts_of_faults(rule: AlertRuleSpec, *, at: datetime) -> list[int]:
    """Number of such faults of each card or node that lasted long enough."""
    rows = Fault.objects.filter(Q(ended_at=None) | Q(ended_at__gt=at - BACK))
    counts: dict[tuple[int, int | None], int] = {}
    for fault in rows.select_related("node__cluster", "card"):
        stood = (fault.ended_at or at) - fault.began_at
        long_enough = stood >= rule.lasts and rule.holds(fault.level)
        if long_enough and all_matchers_match(rule.where, _fault_labels(fault)):
            key = (fault.node_id, fault.card_id)
            counts[key] = counts.get(key, 0) + 1
    return list(counts.values())


def _cards_beyond_threshold(rule: AlertRuleSpec, *, at: datetime) -> list[int]:
    """Cards that exceeded the threshold at some time, by hourly sums and the latest metrics."""
    metric = _measure_suffix(rule)
    extreme = f"{metric}_{'max' if rule.op.upwards else 'min'}"
    found = CardMetrics.objects.filter(threshold_filter(metric, rule), at__gt=at - BACK)
    keys = set(found.values_list("card_id", flat=True))
    if extreme in {field.name for field in CardHour._meta.get_fields()}:
        hours = CardHour.objects.filter(threshold_filter(extreme, rule), hour__gt=at - BACK)
        keys |= set(hours.values_list("card_id", flat=True).distinct())
    cards = Card.objects.filter(pk__in=keys).select_related("node__cluster").order_by("pk")
    return [card.pk for card in cards if all_matchers_match(rule.where, _card_labels(card))]


def _card_labels(card: Card) -> dict[str, str]:
    return {
        "cluster": card.node.cluster.name,
        "node": card.node.name,
        "card": str(card.index),
        "chip": card.chip,
    }


def _firing_counts_of_cards(rule: AlertRuleSpec, cards: list[int], *, at: datetime) -> list[int]:
    """Number of firings of each card, by the most extreme value of each minute."""
    series = metric_samples_by_card(
        cards,
        Metric(_measure_suffix(rule)),
        since=at - BACK,
        at=at,
        each_minute=Max if rule.op.upwards else Min,
    )
    times = [len(dry_run(rule, values)) for values in series.values()]
    return [count for count in times if count]
