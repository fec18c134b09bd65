"""A company of any size, drawn from a seed: two kinds of chips, a network, teams with queues, and their claims."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache

import numpy as np

from controlplane.domain.common.accelerators import CardState
from controlplane.domain.common.resources import GIB, Bytes, Millicpu, Resources
from controlplane.domain.common.topology import Geometry
from controlplane.domain.quotas.claims import GangShape, RoleShape
from controlplane.domain.quotas.queues import ChipQuota, QueueSnapshot
from controlplane.domain.scheduling.cycle import plan_cycle
from controlplane.domain.scheduling.plans import SchedulingPolicy
from controlplane.domain.scheduling.snapshot_simulator import SnapshotSimulator
from controlplane.domain.scheduling.snapshots import (
    CardSnapshot,
    ClaimSnapshot,
    NodeSnapshot,
    RunningClaim,
    SchedulingSnapshot,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CHIPS = ("gpu", "npu")
CARDS = 8
TEAMS = 6
QUEUES_OF_TEAM = 10
NODES_OF_LEAF = 32
LEAVES_OF_SPINE = 8
GEOMETRIES = {
    "gpu": Geometry(numa=((0, 1, 2, 3), (4, 5, 6, 7))),
    "npu": Geometry(sizes=(1, 2, 4, 8), rings=((0, 1, 2, 3), (4, 5, 6, 7))),
}
#: Replicas and cards of each, and how many of a hundred claims are such.
SHAPES = (
    (1, 1, 40),
    (1, 2, 15),
    (1, 4, 15),
    (1, 8, 20),
    (2, 8, 5),
    (4, 8, 3),
    (16, 8, 2),
)
#: For how long claims are expected to run: as others of their size in their queue did.
HOURS = (1, 2, 4, 8, 12, 24)
#: One of so many claims has just ended in a fleet that is nearly full.
JUST_ENDED = 25
#: Neither more placements nor more searches than one cycle would do to fill an empty fleet.
UNBOUNDED = SchedulingPolicy(placements_per_cycle=1 << 30, attempts_per_cycle=1 << 30)


@dataclass(frozen=True, slots=True, kw_only=True)
class Company:
    """What is drawn; the same seed gives the same."""

    nodes: int
    seed: int = 7

    def fleet(self) -> tuple[NodeSnapshot, ...]:
        """Half of the nodes with each chip, leaf by leaf."""
        return tuple(self._node(number) for number in range(self.nodes))

    def queues(self) -> dict[str, QueueSnapshot]:
        """Every team and queue is guaranteed its part of nine tenths of the cards."""
        part = self.nodes * CARDS * 9 // 10 // len(CHIPS) // TEAMS
        queues: dict[str, QueueSnapshot] = {}
        for team in range(TEAMS):
            above = QueueSnapshot(uid=f"team-{team}", name=f"team {team}", entitlements=_even(part))
            queues[above.uid] = above
            for number in range(QUEUES_OF_TEAM):
                uid = f"queue-{team}-{number}"
                queues[uid] = QueueSnapshot(
                    uid=uid, name=uid, parent=above.uid, entitlements=_even(part // QUEUES_OF_TEAM)
                )
        return queues

    def claims(self, count: int, *, name: str) -> tuple[ClaimSnapshot, ...]:
        """So many that wait, submitted one second after the other."""
        hours = np.random.default_rng(self.seed).choice(
            HOURS, size=(TEAMS, QUEUES_OF_TEAM, len(SHAPES))
        )
        random = np.random.default_rng([self.seed, *name.encode()])
        weights = np.array([weight for _, _, weight in SHAPES]) / 100
        shapes = random.choice(len(SHAPES), size=count, p=weights)
        teams = random.integers(TEAMS, size=count)
        numbers = random.integers(QUEUES_OF_TEAM, size=count)
        chips = random.integers(len(CHIPS) + 1, size=count)
        priorities = random.choice(3, size=count, p=(0.2, 0.7, 0.1))
        return tuple(
            _claim(
                uid=f"{name}-{place:06d}",
                queue=f"queue-{teams[place]}-{numbers[place]}",
                shape=SHAPES[shapes[place]][:2],
                chips=CHIPS if chips[place] == len(CHIPS) else (CHIPS[chips[place]],),
                priority=int(priorities[place]),
                place=place,
                runtime=timedelta(hours=float(hours[teams[place], numbers[place], shapes[place]])),
            )
            for place in range(count)
        )

    def empty(self) -> SchedulingSnapshot:
        return SchedulingSnapshot(nodes=self.fleet(), claims=(), queues=self.queues())

    def nearly_full(self, *, waiting: int) -> SchedulingSnapshot:
        """A fleet that was filled by the real cycle until it placed no more, and so many claims that wait."""
        filling = self.claims(self.nodes * 4, name="filling")
        world = SnapshotSimulator(replace(self.empty(), claims=filling))
        decided = plan_cycle(world.snapshot(), UNBOUNDED, NOW)
        while decided.placements:
            for placement in decided.placements:
                runtime = world.claim(placement.claim).runtime or timedelta()
                world.start(placement, at=NOW - runtime / 2, ends_at=NOW + runtime / 2)
            for revocation in decided.revocations:
                world.end(revocation.claim)
            decided = plan_cycle(world.snapshot(), UNBOUNDED, NOW, decided.state)
        for ended in world.running[::JUST_ENDED]:
            world.end(ended.uid)
        full = world.snapshot()
        return replace(
            full,
            claims=self.claims(waiting, name="waiting"),
            running=tuple(saved(running) for running in full.running),
        )

    def _node(self, number: int) -> NodeSnapshot:
        chip = CHIPS[number // NODES_OF_LEAF % len(CHIPS)]
        leaf = number // NODES_OF_LEAF
        return NodeSnapshot(
            uid=f"node-{number:05d}",
            name=f"node-{number:05d}",
            cluster="one",
            cards=tuple(
                CardSnapshot(
                    uid=f"card-{number:05d}-{index}",
                    index=index,
                    chip=chip,
                    state=CardState.USABLE,
                )
                for index in range(CARDS)
            ),
            capacity=Resources(cpu=Millicpu(128_000), memory=Bytes(1024 * GIB)),
            geometries={chip: GEOMETRIES[chip]},
            domains={"spine": f"spine-{leaf // LEAVES_OF_SPINE}", "leaf": f"leaf-{leaf}"},
            owns_cpu=True,
        )


def _even(cards: int) -> dict[str, ChipQuota]:
    return {chip: ChipQuota(guaranteed=cards) for chip in CHIPS}


@cache
def _gang(replicas: int, cards: int) -> GangShape:
    """Equal gangs share one shape, as those that are read from rows do."""
    limits = Resources(cpu=Millicpu(12_000 * cards), memory=Bytes(96 * GIB * cards))
    role = RoleShape(name="worker", replicas=replicas, cards=cards, limits=limits)
    return GangShape(roles=(role,))


def _claim(
    *,
    uid: str,
    queue: str,
    shape: tuple[int, ...],
    chips: tuple[str, ...],
    priority: int,
    place: int,
    runtime: timedelta,
) -> ClaimSnapshot:
    replicas, cards = shape
    return ClaimSnapshot(
        uid=uid,
        queue=queue,
        shape=_gang(replicas, cards),
        chips=chips,
        priority=priority,
        created_at=NOW - timedelta(days=1) + timedelta(seconds=place),
        near="leaf" if replicas > 1 else "",
        runtime=runtime,
    )


def saved(running: RunningClaim) -> RunningClaim:
    """As it would be in the middle of its run: it saved its work ten minutes ago."""
    return replace(running, checkpointed_at=NOW - timedelta(minutes=10))
