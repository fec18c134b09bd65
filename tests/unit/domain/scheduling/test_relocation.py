"""Others make way: who cannot go to a free place takes that of another, which goes first."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

from controlplane.domain.quotas.claims import RoleShape
from controlplane.domain.scheduling.defragmentation import (
    CapacityPlanner,
    FitClaimGoal,
    plan_defragmentation,
)
from controlplane.domain.scheduling.node_table import NodeTable
from controlplane.domain.scheduling.placement import PlacementFinder
from controlplane.domain.scheduling.plans import ClaimPlacement
from controlplane.domain.scheduling.relocation import Relocator, SingleReplicaClaims
from controlplane.domain.scheduling.snapshot_simulator import SnapshotSimulator
from controlplane.domain.scheduling.snapshots import (
    ReplicaDemand,
    ReplicaPlacement,
    RunningClaim,
    SchedulingSnapshot,
)
from tests.unit.domain.scheduling.fleets import AT, NPU, claim, hours, node, role, snapshot

WANTED = claim("wanted", role(share=550))


def sharing(*shares: tuple[int, ...], gibibytes: int = 0) -> SchedulingSnapshot:
    """Nodes of one card each: on ``n0`` claims ``n0-a``, ``n0-b`` with those shares, and so on."""
    world = SnapshotSimulator(
        snapshot(*(node(f"n{place}", 1, memory=8) for place, _ in enumerate(shares)))
    )
    for place, on_card in enumerate(shares):
        for letter, share in zip("abc", on_card, strict=False):
            uid = f"n{place}-{letter}"
            world.submit(claim(uid, role(share=share, memory=gibibytes)))
            seat = ReplicaPlacement(
                role="trainer", index=0, node=f"n{place}", cards=(f"n{place}/0",), count=1
            )
            world.start(
                ClaimPlacement(claim=uid, chip=NPU, replicas=(seat,), reason=""), at=AT - hours(1)
            )
            world.save(uid, at=AT)
    return world.snapshot()


def planner_for(
    seen: SchedulingSnapshot, *, moves: int = 2
) -> tuple[NodeTable, Relocator, CapacityPlanner]:
    fleet = NodeTable(seen)
    mover = Relocator(PlacementFinder(fleet), seen.running, at=AT, restart=hours(0.1))
    return fleet, mover, CapacityPlanner(mover, moves=moves, tries=64)


def making_way(
    seen: SchedulingSnapshot, asked: RoleShape, *, staying: tuple[str, ...] = ()
) -> list[RunningClaim]:
    fleet = NodeTable(seen)
    nowhere = np.zeros(len(fleet.rows), dtype=np.bool_)
    found = SingleReplicaClaims(fleet, seen.running).replaceable_workloads(
        ReplicaDemand.of(asked, WANTED, NPU), avoid=nowhere, excluded=staying
    )
    return [running for _, running in found]


def test_one_takes_the_place_of_another_that_goes_first() -> None:
    """The example of the module: every rest but the largest is too small for whom it would have to take."""
    seen = sharing((320, 470), (470, 320), (650,))
    found = plan_defragmentation(seen, FitClaimGoal(claim=WANTED, chip=NPU), at=AT)
    first, second = found.moves
    assert [replica.node for replica in first.target] == ["n2"]
    assert first.source == second.target
    assert {first.claim, second.claim} in ({"n1-b", "n0-b"}, {"n0-a", "n1-a"})
    (seat,) = found.room
    assert (seat.node,) == tuple(replica.node for replica in second.source)


def test_every_share_fits_where_the_moves_left_it() -> None:
    fleet, _, planner = planner_for(sharing((320, 470), (470, 320), (650,)))
    assert planner.make(WANTED, NPU, worth=inf)
    left = fleet.states.lefts[fleet.state].sum()
    assert left == 3000 - 320 - 470 - 470 - 320 - 650 - 550


def test_nobody_gives_way_beyond_the_moves_that_are_allowed() -> None:
    fleet, mover, planner = planner_for(sharing((320, 470), (470, 320), (650,)), moves=1)
    before = fleet.state.copy()
    assert planner.make(WANTED, NPU, worth=inf) is None
    assert not mover.moves
    assert (fleet.state == before).all()


def test_nobody_gives_way_for_less_than_it_costs() -> None:
    seen = sharing((320, 470), (470, 320), (650,))
    _, mover, planner = planner_for(seen)
    assert planner.make(WANTED, NPU, worth=1.0) is None
    assert not mover.moves


def test_who_would_have_nowhere_to_go_does_not_give_way() -> None:
    seen = sharing((320, 470), (470, 320), (650, 320))
    assert not plan_defragmentation(seen, FitClaimGoal(claim=WANTED, chip=NPU), at=AT).moves


@pytest.mark.parametrize(
    ("each_has", "wanted", "found"),
    [(3, 6, {"n0-a", "n1-a", "n2-a"}), (3, 9, set()), (5, 6, set())],
    ids=["room", "too much is wanted", "too much to go elsewhere"],
)
def test_memory_has_to_be_there_for_both(each_has: int, wanted: int, found: set[str]) -> None:
    seen = sharing((320,), (470,), (650,), gibibytes=each_has)
    assert {each.uid for each in making_way(seen, role(share=700, memory=wanted))} == found


def test_who_stays_is_not_asked() -> None:
    seen = sharing((320,), (470,), (650,))
    found = making_way(seen, role(share=700), staying=("n0-a",))
    assert [each.uid for each in found] == ["n1-a", "n2-a"]
