"""A small fleet whose cards run hot, and people who want to hear of it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from apps.accounts.models import User
from apps.fleet.models import Card, Cluster
from apps.monitoring.models import AlertReceiver, AlertRule
from apps.monitoring.selectors.alerts import alert_rule_spec_of
from apps.monitoring.selectors.rule_samples import rule_alert_samples
from apps.monitoring.services import alerts
from apps.monitoring.services.alert_evaluation import alert_rule_evaluate
from apps.monitoring.services.alerts import (
    AlertReceiverRequest,
    AlertRouteRequest,
    alert_receiver_create,
    alert_route_create,
)
from apps.telemetry.models import CardMetrics
from controlplane.domain.alerts.chat_messages import ReceiverKind
from controlplane.domain.alerts.rules import AlertSample, AlertSeverity
from tests.contract.web_servers import WebServer

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOT: dict[str, Any] = {
    "name": "hot",
    "title": "Too hot",
    "measure": "cards.temperature",
    "op": ">",
    "threshold": 90,
    "severity": "critical",
    "group_by": ["cluster"],
}


def after(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def create_rule(actor: User, **changes: Any) -> AlertRule:
    return alerts.alert_rule_create(document={**HOT, **changes}, actor=actor, at=NOON)


def warm(cards: Iterable[Card], *, at: datetime, temperature: float = 95.0) -> None:
    for card in cards:
        CardMetrics.objects.update_or_create(
            card=card, defaults={"at": at, "received_at": at, "temperature": temperature}
        )


def judged(rule: AlertRule, *, at: datetime) -> int:
    """One turn of that rule alone, with what the tables say; how many notices."""
    rule.refresh_from_db()
    return alert_rule_evaluate(
        rule=rule, samples=rule_alert_samples(alert_rule_spec_of(rule), at=at), at=at
    )


def seen(rule: AlertRule, *cards: int, at: datetime) -> int:
    """One turn that sees those cards too hot; how many notices."""
    rule.refresh_from_db()
    samples = [
        AlertSample(labels={"cluster": "west", "node": "n", "card": str(card)}, value=95.0)
        for card in cards
    ]
    return alert_rule_evaluate(rule=rule, samples=samples, at=at)


def create_receiver(
    actor: User, server: WebServer, *, kind: ReceiverKind = ReceiverKind.WEBHOOK, **more: Any
) -> AlertReceiver:
    """With a route that sends it everything."""
    request = AlertReceiverRequest(
        **{
            "name": f"{kind.value} here",
            "kind": kind,
            "url": f"http://127.0.0.1:{server.port}/{kind.value}",
            "language": "en",
            **more,
        }
    )
    receiver = alert_receiver_create(request=request, actor=actor)
    alert_route_create(
        request=AlertRouteRequest(
            name=request.name, severity=AlertSeverity.INFO, receivers=[receiver]
        ),
        actor=actor,
    )
    return receiver


def cards_of(cluster: Cluster) -> list[Card]:
    return list(Card.objects.filter(node__cluster=cluster).order_by("index"))
