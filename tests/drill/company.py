"""The company that is drilled: simulated nodes full of gangs, the product's loops, and a clock that is moved.

Half of the nodes have GPUs, half NPUs. Loops are turned when news would have called for them, for the attempts
that the news would have named; between two turns nothing happens, so a week is replayed as fast as it can be.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import cast

from django.utils import timezone

from apps.accounts import services as accounts
from apps.accounts.models import Team, User
from apps.fleet import reconcilers as fleet_reconcilers
from apps.fleet import selectors as fleet
from apps.fleet.models import Card, Cluster
from apps.jobs import services as jobs
from apps.jobs.models import Attempt
from apps.jobs.reconcilers import attempts
from apps.models.models import DatasetVersion, ModelVersion
from apps.models.services.datasets import dataset_upload
from apps.monitoring.models import HealthPolicy, Isolation
from apps.monitoring.reconcilers.health import health_reconcile
from apps.monitoring.services.isolations import isolations_release
from apps.quotas import reconcilers as scheduling
from apps.quotas.models import Allocation, Claim, Queue
from apps.telemetry.services.metric_storage import history_partitions_create
from controlplane.adapters.clusters.simulated import SimulatedCluster
from controlplane.domain.common.accelerators import CardState
from controlplane.domain.common.permissions import TeamRole
from controlplane.domain.jobs.lifecycle import AttemptState, JobKind
from controlplane.domain.quotas.claims import ClaimState
from controlplane.domain.scheduling.plans import SchedulingPolicy
from controlplane.domain.simulation.run_profiles import PREFIX
from controlplane.ports.engines import RenderRequest
from controlplane.ports.launches import Launch
from tests.drill.faults import Node
from tests.drill.voices import Voices
from tests.integration.company import ENGINE, PlainEngine, ready_model, rows

CHIPS = {"nvidia": "nvidia-h100", "ascend": "ascend-910b3"}
CARDS_A_NODE = 8
#: Cards of one gang.
SIZES = (8, 16, 32, 64)
#: Share of the cards that gangs hold; the rest is what they can move to.
FULL = 0.75
_RUNS = 12
_LEAF = 25
_LIVE = (AttemptState.ADMITTED, AttemptState.LAUNCHED, AttemptState.STOPPING)


class DrillEngine(PlainEngine):
    """Its trainings never end by themselves, and have nothing to save when they are told to stop."""

    def render(self, request: RenderRequest) -> Launch:
        launch = super().render(request)
        lasting = {f"{PREFIX}run-seconds": "100000000", f"{PREFIX}prepare-seconds": "0"}
        return replace(launch, labels={**launch.labels, **lasting})


@dataclass(kw_only=True)
class Company:
    cluster: Cluster
    adapter: SimulatedCluster
    nodes: tuple[Node, ...]
    voices: Voices
    draws: Random
    operator: User
    team: Team
    queue: Queue
    model: ModelVersion
    dataset: DatasetVersion
    at: datetime
    #: Seconds of the wall of each turn of the health loop.
    durations: list[float] = field(default_factory=list)
    _days: set[object] = field(default_factory=set)

    # -- Time --

    def later(self, amount: timedelta) -> datetime:
        return self.move_to(self.at + amount)

    def move_to(self, at: datetime) -> datetime:
        """Time never goes back; nothing happens on the way."""
        self.at = max(self.at, at)
        self.adapter.hold(self.at)
        days = {(self.at + timedelta(days=ahead)).date() for ahead in (-1, 0, 1)}
        if days - self._days:
            history_partitions_create(days=sorted(days))
            self._days |= days
        return self.at

    # -- Loops --

    def turn(self) -> int:
        """Decide about health, now."""
        began = time.perf_counter()
        written = health_reconcile(at=self.at)
        self.durations.append(time.perf_counter() - began)
        return written

    def follow(self) -> None:
        """What jobs do about claims that were withdrawn or admitted, until there is nothing more to do."""
        for _ in range(_RUNS):
            waiting = list(self._moving())
            if not waiting:
                return
            for first in range(0, len(waiting), attempts.BATCH):
                some = waiting[first : first + attempts.BATCH]
                attempts.attempts_reconcile(at=self.at, uids=some)
        raise RuntimeError(f"attempts still move after {_RUNS} turns, such as {waiting[0]}")

    def admit(self) -> int:
        """A scheduling cycle; how many gangs it placed."""
        return scheduling.cycle_run(
            policy=SchedulingPolicy(), at=self.later(timedelta(milliseconds=10))
        )

    def place(self) -> int:
        """A scheduling cycle, and what it placed is started; how many that were."""
        admitted = self.admit()
        self.follow()
        return admitted

    def recover(self) -> None:
        """Gangs that were hit are stopped, wait again and are placed."""
        self.follow()
        if Claim.objects.filter(state=ClaimState.PENDING).exists():
            self.place()

    def _moving(self) -> Iterator[str]:
        stopping = Claim.objects.filter(state=ClaimState.REVOKING).values("uid")
        admitted = Claim.objects.filter(state=ClaimState.ADMITTED).values("uid")
        running = Attempt.objects.filter(state=AttemptState.RUNNING, claim_uid__in=stopping)
        pending = Attempt.objects.filter(state=AttemptState.PENDING, claim_uid__in=admitted)
        live = Attempt.objects.filter(state__in=_LIVE)
        for each in (running, live, pending):
            yield from each.values_list("uid", flat=True)

    # -- Work --

    def fill(self, *, share: float = FULL) -> int:
        """Gangs until that share of each vendor's cards is asked for; how many of them run."""
        for vendor, chip in CHIPS.items():
            whole = sum(node.cards for node in self.nodes if node.vendor == vendor)
            sizes = [size for size in SIZES if size <= max(CARDS_A_NODE, whole // 8)]
            asked, number = 0, 0
            while asked + sizes[number % len(sizes)] <= whole * share:
                size = sizes[number % len(sizes)]
                self._submit(f"{vendor} {number}", chip=chip, cards=size)
                asked, number = asked + size, number + 1
        while self.place():
            pass
        # What was asked for was asked for by the clock on the wall.
        self.move_to(timezone.now())
        return Attempt.objects.filter(state=AttemptState.RUNNING).count()

    def _submit(self, name: str, *, chip: str, cards: int) -> None:
        request = jobs.JobRequest(
            kind=JobKind.FINETUNE,
            name=name,
            spec={},
            queue=self.queue,
            engine=ENGINE,
            model_version=self.model,
            dataset_version=self.dataset,
            output_name="drilled",
            chips=(chip,),
            cards=cards,
        )
        jobs.job_submit(actor=self.operator, team=self.team, request=request)

    def hit_gangs(self) -> int:
        """How many were told to stop and hold cards still."""
        return Claim.objects.filter(state=ClaimState.REVOKING).count()

    def waiting(self) -> int:
        return Claim.objects.filter(state=ClaimState.PENDING).count()

    # -- The fleet's state --

    def out(self) -> set[tuple[str, int]]:
        """Cards that take nothing new, by node and place."""
        rows = Card.objects.filter(state__in=(CardState.ISOLATED, CardState.NO_NEW_WORK))
        return set(rows.values_list("node__name", "index"))

    def is_out(self, node: str, index: int | None) -> bool:
        cards = Card.objects.filter(node__name=node)
        if index is not None:
            cards = cards.filter(index=index)
        return not cards.filter(state=CardState.USABLE).exists()

    def allow(self, **settings: float) -> None:
        """What an operator lets rules do."""
        HealthPolicy.objects.all().delete()
        if settings:
            HealthPolicy.objects.create(
                settings=settings, changed_by=self.operator, changed_at=self.at
            )

    def release(self, *, node: str | None = None) -> None:
        """What was repaired is given back by a person: nothing simulated can be burnt in."""
        rows = Isolation.objects.filter(ended_at=None)
        if node is not None:
            rows = rows.filter(node__name=node)
        uids = list(rows.values_list("uid", flat=True))
        for first in range(0, len(uids), 500):
            isolations_release(
                uids=uids[first : first + 500],
                reason="repaired",
                actor=self.operator,
                at=self.at,
            )

    def mend(self) -> None:
        """Everything works again, a day later, and what waited runs."""
        complaining = self.voices.complaining()
        self.voices.hush()
        self.allow()
        self.later(timedelta(minutes=1))
        # Each voice has to take back what it said: exporters in the round, and agents that pushed.
        self.voices.report_all(at=self.at)
        self.later(timedelta(seconds=1))
        for name in complaining:
            self.voices.report(name, at=self.at)
        self.voices.report_conditions(at=self.at)
        self.turn()
        self.release()
        # What came and went today is not held against tomorrow.
        self.later(timedelta(hours=25))
        self.turn()
        self.recover()

    # -- What must never be --

    def placed_on_isolated(self) -> int:
        """Allocations that began while their card was out of use."""
        misplaced = 0
        stays = Isolation.objects.values_list("node_id", "card_id", "began_at", "ended_at")
        for node, card, began_at, ended_at in stays:
            rows = Allocation.objects.filter(node=node, allocated_at__gt=began_at)
            if card is not None:
                rows = rows.filter(card=card)
            if ended_at is not None:
                rows = rows.filter(allocated_at__lt=ended_at)
            misplaced += rows.count()
        held = Allocation.objects.filter(released_at=None, card__state=CardState.ISOLATED)
        return misplaced + held.filter(claim__state=ClaimState.ADMITTED).count()


def found(home: Path, *, nodes: int, seed: int) -> Company:
    """The company with nothing running yet, its stock taken."""
    draws = Random(seed)
    half = nodes // 2
    groups = [
        {"name": vendor, "chip": chip, "nodes": count, "levels": _network(count)}
        for (vendor, chip), count in zip(CHIPS.items(), (nodes - half, half), strict=True)
    ]
    row = Cluster.objects.create(
        name="drilled", kind="simulated", options={"home": str(home), "fleet": {"groups": groups}}
    )
    adapter = cast(SimulatedCluster, fleet.cluster_adapter(row))
    at = timezone.now()
    adapter.hold(at)
    fleet_reconcilers.inventories_sync(at=at)
    operator = User.objects.create(username="mei", is_superuser=True)
    team = Team.objects.create(name="Drilled", slug="drilled")
    accounts.membership_set(
        team=team, user=operator, roles=frozenset({TeamRole.ENGINEER}), actor=None
    )
    there = tuple(_nodes(row))
    company = Company(
        cluster=row,
        adapter=adapter,
        nodes=there,
        voices=Voices(row, there, draws=draws),
        draws=draws,
        operator=operator,
        team=team,
        queue=Queue.objects.create(name="default"),
        model=ready_model(team=team, name="tiny"),
        dataset=dataset_upload(
            actor=operator, team=team, name="rows", stream=rows(40), filename="rows.jsonl"
        ),
        at=at,
    )
    company.move_to(at)
    return company


def _network(nodes: int) -> Mapping[str, int]:
    """Leaves of 25 nodes, where that comes out even."""
    return {"leaf": _LEAF} if nodes % _LEAF == 0 else {}


def _nodes(cluster: Cluster) -> Sequence[Node]:
    cards: dict[str, tuple[str, int]] = {}
    listed = Card.objects.filter(node__cluster=cluster).order_by("node__name", "index")
    for name, chip in listed.values_list("node__name", "chip"):
        vendor, count = cards.get(name, (chip.partition("-")[0], 0))
        cards[name] = (vendor, count + 1)
    return [Node(name=name, vendor=vendor, cards=count) for name, (vendor, count) in cards.items()]
