"""Figures of the sample cards, faults, what was decided about them, and what is out of use."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import sin
from random import Random

from apps.fleet.models import Card, Node
from apps.models.models import ModelVersion
from apps.monitoring.models import Decision, Fault
from apps.monitoring.services.faults import faults_acknowledge
from apps.monitoring.services.isolations import isolations_request
from apps.quotas.models import Allocation, Claim
from apps.telemetry.models import CardHour, CardMetrics, Source
from apps.telemetry.services.metric_sources import agent_push_source
from apps.telemetry.services.node_tokens import node_token_issue
from controlplane.domain.common.accelerators import CardState
from controlplane.domain.common.resources import GIB
from controlplane.domain.health.faults import FaultLevel, SignalOrigin
from controlplane.domain.health.snapshots import HealthAction
from tests import factories
from tests.e2e.demo.clock import NOW, ago
from tests.e2e.demo.fleet import GPU, Fleet
from tests.e2e.demo.users import Users
from tests.factories import usage

#: How far back what was measured of one card goes, and its hourly sums.
HISTORY = timedelta(hours=6)
HOURS = 24 * 7
#: Cards whose own pages are looked at: their figures have an age.
ALONE = (("sample-gpus-1", 0), ("sample-gpus-3", 2))
#: So that the others' figures are new for as long as somebody looks at the sample.
LASTS = NOW + timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    #: A card that works, with a long history; and one that is out of use.
    well: Card
    broken: Card
    #: A source that is read, one that does not answer, and one that agents push to.
    measured: Source
    failing: Source
    agents: Source


def health(who: Users, where: Fleet) -> Health:
    """To be called when all work is placed: what is held is warm, what is not is cool."""
    measured = factories.source(
        where.gpus,
        name="gpu-exporters",
        readings=32,
        every=3600,
        options={
            "vendor": "nvidia",
            "targets": [
                {
                    "url": f"http://gpu-{number}.example:9400/metrics",
                    "node": f"sample-gpus-{number}",
                }
                for number in range(1, 5)
            ],
        },
        refused=3,
        refusals=["DCGM_FI_DEV_GPU_TEMP: 4294967295 is no temperature (card 6 of sample-gpus-4)"],
        unreachable={"sample-gpus-3": "the response has status 503"},
    )
    failing = factories.source(
        where.lost,
        name="lab-prometheus",
        kind="prometheus",
        options={"vendor": "nvidia", "url": "http://prometheus.lab.example", "window": 30},
        read_at=NOW - timedelta(minutes=47),
        error="http://prometheus.lab.example: no answer within 5 s",
    )
    agents = _agents(where)
    _assistant(who, where)
    _newest(idle=_forgotten(who, where))
    CardMetrics.objects.filter(card__node__cluster=where.gpus).update(source=measured)
    CardMetrics.objects.filter(card__node__name="sample-npus-1").update(source=agents)
    well = _card("sample-gpus-1", 0)
    _past(well)
    _faults(who)
    broken = _card("sample-gpus-3", 2)
    return Health(well=well, broken=broken, measured=measured, failing=failing, agents=agents)


def _agents(where: Fleet) -> Source:
    """One is heard, one has fallen silent, one was never started and one had its token taken away."""
    agent = {"name": "ninefold-agent", "vendor": "ascend", "reader_ok": True}
    ages = {1: timedelta(0), 2: timedelta(hours=2), 3: None, 4: timedelta(days=2)}
    for number, age in ages.items():
        node = Node.objects.get(name=f"sample-npus-{number}")
        node_token_issue(node=node, actor=None)
        if age is not None:
            last = LASTS if number == 1 else NOW - age
            node.tokens.update(used_at=last, agent={**agent, "reader_ok": number != 2})
    Node.objects.get(name="sample-npus-4").tokens.update(revoked_at=NOW - timedelta(days=1))
    source = agent_push_source(Node.objects.get(name="sample-npus-1").cluster)
    Source.objects.filter(pk=source.pk).update(read_at=LASTS, tried_at=LASTS, readings=8)
    return source


def _card(node: str, index: int) -> Card:
    return Card.objects.select_related("node").get(node__name=node, index=index)


def _holding(who: Users, where: Fleet, *, cards: int, hours: float, name: str) -> Claim:
    return usage.holding(
        since=NOW - timedelta(hours=hours),
        queue=where.default,
        team=who.maps,
        user=who.ada,
        cards=cards,
        name=name,
        chip=GPU,
    )


def _assistant(who: Users, where: Fleet) -> None:
    """A deployment on GPUs of a model that the catalog knows."""
    known = ModelVersion.objects.filter(catalog_model__isnull=False).order_by("pk")[0]
    with ago(hours=30):
        row = factories.deployment(
            actor=who.ada, team=who.maps, queue=where.default, model=known, name="assistant"
        )
    claim = _holding(who, where, cards=1, hours=30, name=row.name)
    Claim.objects.filter(pk=claim.pk).update(work_kind="deployment", work_uid=row.uid)


def _forgotten(who: Users, where: Fleet) -> list[Card]:
    """Cards of a job that somebody left open in the morning."""
    claim = _holding(who, where, cards=2, hours=5.5, name="notebook for a look")
    cards = [row.card for row in claim.allocations.select_related("card__node")]
    for card in cards:
        factories.history(
            card,
            since=NOW - timedelta(hours=5.4),
            until=NOW,
            every=timedelta(minutes=5),
            measured=lambda _at: {"utilization": 0.0, "power": 92.0, "temperature": 34.0},
        )
    return cards


def _newest(*, idle: Collection[Card]) -> None:
    """Of every accelerator but the last node's, where nobody measures; one is hot, one was measured earlier."""
    chance = Random(5)
    held = set(Allocation.objects.filter(released_at=None).values_list("card_id", flat=True))
    cards = Card.objects.filter(node__name__startswith="sample-").exclude(
        node__name="sample-npus-4"
    )
    for card in cards.select_related("node"):
        busy = card.state == CardState.USABLE and (card.pk in held or chance.random() < 0.2)
        busy = busy and card not in idle
        load = chance.uniform(35, 99) if busy else chance.uniform(0, 3)
        old = card.node.name == "sample-npus-3"
        watched = (card.node.name, card.index) not in ALONE
        factories.card_metrics(
            [card],
            at=NOW - timedelta(minutes=25) if old else LASTS if watched else None,
            utilization=load,
            memory_used=card.memory * (0.15 + 0.008 * load),
            memory_total=float(card.memory),
            temperature=31 + 0.5 * load + chance.uniform(-3, 3),
            memory_temperature=35 + 0.5 * load,
            power=(700 if card.chip == GPU else 400) * (0.1 + 0.0085 * load),
            ecc_uncorrected=4.0 if card.state == "isolated" else 0.0,
        )


def _past(card: Card) -> None:
    def measured(at: datetime) -> dict[str, float]:
        turn = sin(at.timestamp() / 2400)
        load = 78 + 14 * turn
        return {
            "utilization": load,
            "memory_used": (58 + 6 * turn) * GIB,
            "memory_total": 80.0 * GIB,
            "temperature": 60 + 9 * turn,
            "memory_temperature": 66 + 8 * turn,
            "power": 480 + 120 * turn,
            "ecc_corrected": float(int(at.timestamp()) // 7200 % 40),
            "ecc_uncorrected": 0.0,
        }

    # Its exporter was down for a while.
    for since, until in ((HISTORY, HISTORY / 3), (HISTORY / 4, timedelta(0))):
        factories.history(
            card,
            since=NOW - since,
            until=NOW - until,
            every=timedelta(seconds=30),
            measured=measured,
        )
    hour = NOW.replace(minute=0, second=0, microsecond=0)
    CardHour.objects.bulk_create(
        CardHour(
            card=card,
            hour=hour - timedelta(hours=number),
            samples=360,
            utilization_mean=60 + 30 * sin(number / 9),
            utilization_max=96.0,
            temperature_mean=55 + 8 * sin(number / 9),
            power_mean=420 + 140 * sin(number / 9),
            memory_used_mean=52.0 * GIB,
            memory_total_max=80.0 * GIB,
        )
        for number in range(1, HOURS)
    )


def _faults(who: Users) -> None:
    ecc = factories.fault(
        _card("sample-gpus-3", 2), code="48", at=NOW - timedelta(hours=3), count=4
    )
    _decided(ecc, HealthAction.RESET_NOW, "4 uncorrectable memory errors within 10 min")
    with ago(hours=3):
        isolations_request(
            cards=[ecc.card.uid] if ecc.card else [],
            reason="uncorrectable memory errors: 4 in 10 min",
            actor=who.admin,
            at=NOW - timedelta(hours=3),
        )
    link = factories.fault(
        _card("sample-gpus-1", 5),
        code="74",
        level=FaultLevel.RESET_WHEN_IDLE,
        at=NOW - timedelta(hours=20),
    )
    _decided(link, HealthAction.RESET_WHEN_IDLE, "an error of the link between cards")
    faults_acknowledge(
        uids=[link.uid],
        note="cable is ordered; arrives on Tuesday",
        actor=who.admin,
        at=NOW - timedelta(hours=18),
    )
    for index in (5, 6):
        memory = factories.fault(
            _card("sample-npus-2", index),
            code="80E01801",
            vendor="ascend",
            at=NOW - timedelta(minutes=12),
            message="HBM multi-bit ECC error",
        )
        _decided(
            memory,
            HealthAction.ISOLATE_CARD,
            "fault 80E01801 has level L6; the isolation would make 4 of 32 cards of huawei-ascend-910b4 "
            "in sample unavailable (12.5%); the policy allows 3",
            outcome=Decision.Outcome.HELD_BACK,
        )
    factories.fault(
        Node.objects.get(name="sample-npus-3"),
        code="MemoryPressure",
        vendor="",
        origin=SignalOrigin.CONDITION,
        level=FaultLevel.RESTART_JOB,
        message="kubelet has insufficient memory available",
        at=NOW - timedelta(minutes=40),
    )
    for hours in (30, 52):
        at = NOW - timedelta(hours=hours)
        over = factories.fault(
            _card("sample-gpus-1", 0), code="31", level=FaultLevel.RESTART_JOB, at=at
        )
        Fault.objects.filter(pk=over.pk).update(ended_at=at + timedelta(minutes=6))


def _decided(
    fault: Fault,
    action: HealthAction,
    reason: str,
    *,
    outcome: Decision.Outcome = Decision.Outcome.DONE,
) -> None:
    Decision.objects.create(
        node=fault.node,
        card=fault.card,
        fault=fault,
        action=action,
        outcome=outcome,
        reason=reason,
        at=fault.began_at + timedelta(seconds=1),
    )
