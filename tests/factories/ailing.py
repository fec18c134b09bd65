"""A card with a fault, out of use, and a rule over figures."""

from __future__ import annotations

from datetime import datetime

from apps.accounts.models import User
from apps.fleet.models import Card
from apps.monitoring.models import Fault, HealthRule
from apps.monitoring.services.faults import signals_record
from apps.monitoring.services.health_rules import health_rule_create
from apps.monitoring.services.isolations import isolations_request
from controlplane.domain.health.faults import FaultLevel, FaultSignal, SignalOrigin
from tests.factories.fleet import cluster


def ailing_card(*, actor: User, at: datetime, name: str = "ward") -> dict[str, str]:
    """On a cluster of its own; uids of the fault, of the isolation and of the rule."""
    where = cluster(cards=1, name=name)
    signals_record(
        signals=[
            FaultSignal(
                origin=SignalOrigin.EXPORTER,
                cluster=where.uid,
                node=f"{name}-1",
                index=0,
                code="79",
                level=FaultLevel.ISOLATE,
                at=at,
                vendor="nvidia",
            )
        ],
        at=at,
    )
    card = Card.objects.get(node__cluster=where)
    (isolation,) = isolations_request(cards=[card.uid], reason="it smells", actor=actor, at=at)
    condition = {"metric": "temperature", "op": ">", "value": 95}
    document = {"name": f"{name}-hot", "condition": condition, "level": 1}
    rule: HealthRule = health_rule_create(document=document, actor=actor, at=at)
    fault = Fault.objects.get(card=card)
    return {"fault": fault.uid, "isolation": isolation.uid, "health_rule": rule.uid}
