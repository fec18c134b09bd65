"""Figures are judged by the rules, and what they say becomes faults like all others."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from apps.fleet.models import Card
from apps.monitoring.models import Fault, HealthRule
from apps.monitoring.selectors.judged_figures import MOST, candidates, reach_of, series_of
from apps.monitoring.services.faults import signals_record
from apps.monitoring.services.health_rules import rules_seed
from controlplane.domain.faults import FaultLevel
from controlplane.domain.health.rule_documents import RuleRefused, condition_of
from controlplane.domain.health.rules import Condition, Finding, Verdict, evaluate
from controlplane.domain.health.signals import Origin, Signal
from controlplane.persistence.leases import leader_lease

log = logging.getLogger(__name__)

LEASE = "monitoring.health-rules"
LEASE_TTL = timedelta(seconds=120)


def rules_turn(*, at: datetime) -> int:
    """Judge all figures once, unless that happens already; how many cards a rule fires on."""
    with leader_lease(LEASE, ttl=LEASE_TTL) as lease:
        if lease is None:
            return 0
        rules_seed(at=at)
        rules = list(HealthRule.objects.filter(enabled=True))
        firing = sum(_judge(rule, at=at) for rule in rules)
        _forget(rules, at=at)
    return firing


def _judge(rule: HealthRule, *, at: datetime) -> int:
    """One rule on every card; those on which it stood and holds no longer are over."""
    try:
        condition = condition_of(rule.condition)
    except RuleRefused as refusal:
        log.warning("a rule is not understood", extra={"rule": rule.name, "why": str(refusal)})
        return 0
    standing = Fault.objects.filter(origin=Origin.RULE, code=rule.name, ended_at=None)
    asked = candidates(condition, at=at)
    if len(asked) == MOST:
        log.warning("a rule may hold of too many cards", extra={"rule": rule.name, "cards": MOST})
    cards = sorted({*asked, *standing.exclude(card=None).values_list("card", flat=True)})
    findings = _findings(condition, cards, at=at)
    rows = Card.objects.select_related("node__cluster").in_bulk(list(findings))
    signals = [
        _signal(rule, condition, rows[card], finding, at=at)
        for card, finding in findings.items()
        if card in rows
    ]
    if signals:
        signals_record(signals=signals, at=at)
    return sum(signal.active for signal in signals)


def _findings(condition: Condition, cards: list[int], *, at: datetime) -> dict[int, Finding]:
    """What is known for sure: what was not measured keeps what was said of it."""
    series = series_of(cards, condition, since=at - reach_of(condition), at=at)
    found = {card: evaluate(condition, series.get(card, ()), at) for card in cards}
    sure = (Verdict.FIRES, Verdict.CLEAR)
    return {card: finding for card, finding in found.items() if finding.verdict in sure}


def _signal(
    rule: HealthRule, condition: Condition, card: Card, finding: Finding, *, at: datetime
) -> Signal:
    fires = finding.verdict is Verdict.FIRES
    return Signal(
        origin=Origin.RULE,
        cluster=card.node.cluster.uid,
        node=card.node.name,
        index=card.index,
        code=rule.name,
        level=FaultLevel(rule.level),
        at=at,
        active=fires,
        message=f"{rule.title}: {condition.metric} {condition.how} is {finding.figure:g}"
        if fires
        else "",
    )


def _forget(rules: list[HealthRule], *, at: datetime) -> None:
    """What a rule said that is there no more, or is switched off, is over."""
    Fault.objects.filter(origin=Origin.RULE, ended_at=None).exclude(
        code__in=[rule.name for rule in rules]
    ).update(ended_at=at)
