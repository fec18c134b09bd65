"""Alerts that fire, fired and are silenced, and those who are told."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from apps.accounts.models import User
from apps.monitoring.models import AlertGroup, AlertReceiver, AlertRoute, AlertRule, AlertSilence
from apps.monitoring.services import alerts as services
from apps.monitoring.services.alert_evaluation import alert_rule_evaluate
from apps.monitoring.services.alerts import (
    AlertReceiverRequest,
    AlertRouteRequest,
    alert_receiver_create,
    alert_route_create,
)
from controlplane.domain.alerts.chat_messages import ReceiverKind
from controlplane.domain.alerts.rules import AlertSample, AlertSeverity

RULE: dict[str, Any] = {
    "name": "memory-hot",
    "title": "Memory is too hot",
    "measure": "cards.memory_temperature",
    "op": ">",
    "threshold": 95,
    "lasts": 0,
    "severity": "warning",
    "group_by": ["cluster"],
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Alerts:
    rule: AlertRule
    firing: AlertGroup
    silence: AlertSilence
    receiver: AlertReceiver
    route: AlertRoute

    def names(self) -> dict[str, str]:
        """Uids by what they are."""
        return {
            "alert": self.firing.uid,
            "alert.rule": self.rule.uid,
            "alert.silence": self.silence.uid,
            "alert.receiver": self.receiver.uid,
            "alert.route": self.route.uid,
        }


def firing_alerts(*, actor: User, at: datetime, cluster: str = "here", hot: int = 3) -> Alerts:
    """An episode that goes on, one that is over, a silence of another node, and a chat that hears of all."""
    rule = services.alert_rule_create(document=RULE, actor=actor, at=at)
    receiver = alert_receiver_create(
        request=AlertReceiverRequest(
            name="night shift",
            kind=ReceiverKind.SLACK,
            url="https://hooks.example.com/services/1",
            language="en",
        ),
        actor=actor,
    )
    route = alert_route_create(
        request=AlertRouteRequest(
            name="everything", severity=AlertSeverity.INFO, receivers=[receiver]
        ),
        actor=actor,
    )
    silence = services.silence_create(
        name="cooling trial",
        matchers=["rule=memory-hot", "node=test-*"],
        ends_at=at + timedelta(days=30),
        reason="new cooling is being tried",
        actor=actor,
        at=at,
    )
    past = [_sample("elsewhere", 0)]
    now = [_sample(cluster, index) for index in range(hot)]
    for hours, samples in ((5, past), (4, ()), (2, now[:1]), (1, now)):
        alert_rule_evaluate(rule=rule, samples=samples, at=at - timedelta(hours=hours))
    firing = AlertGroup.objects.get(rule=rule, ended_at=None)
    rule.refresh_from_db()
    return Alerts(rule=rule, firing=firing, silence=silence, receiver=receiver, route=route)


def _sample(cluster: str, index: int) -> AlertSample:
    labels = {"cluster": cluster, "node": f"{cluster}-1", "card": str(index), "chip": "cpu"}
    return AlertSample(labels=labels, value=97.0 + index)
