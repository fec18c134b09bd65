"""What the benchmark of speed measures: that it decides for everybody, on a fleet that the cycle itself filled."""

from __future__ import annotations

import pytest

from controlplane.domain.scheduling.plans import SchedulingPolicy
from tests.benchmarks.scheduling.companies import CARDS, Company
from tests.benchmarks.scheduling.speed import Limit, cycle, decisions, rate

COMPANY = Company(nodes=32)


def test_a_cycle_decides_for_every_claim_of_a_fleet_that_is_nearly_full() -> None:
    snapshot = COMPANY.nearly_full(waiting=200)
    held = sum(not card.free for node in snapshot.nodes for card in node.cards)
    _seconds, found = cycle(snapshot, iterations=1)
    decided = {each.claim for each in found.placements}
    decided |= {each.claim for each in found.pending}
    assert held > 0.85 * len(snapshot.nodes) * CARDS
    assert decided == {claim.uid for claim in snapshot.claims}
    assert len(found.placements) <= SchedulingPolicy().placements_per_cycle


def test_the_same_company_is_drawn_again() -> None:
    assert COMPANY.claims(20, name="x") == COMPANY.claims(20, name="x")
    assert COMPANY.claims(20, name="x") != COMPANY.claims(20, name="y")


def test_there_is_a_time_for_each_decision() -> None:
    placed, refused = decisions(COMPANY, waiting=200)
    assert placed
    assert refused
    assert len(placed) + len(refused) == 200


def test_a_rate_counts_what_was_placed() -> None:
    assert rate(COMPANY, placements=10) > 0


@pytest.mark.parametrize(
    ("limit", "met"),
    [
        (Limit(name="x", value=2, unit="s", most=3), True),
        (Limit(name="x", value=4, unit="s", most=3), False),
        (Limit(name="x", value=4, unit="/s", least=3), True),
        (Limit(name="x", value=2, unit="/s", least=3), False),
    ],
)
def test_a_limit_is_met_on_the_right_side_of_it(limit: Limit, met: bool) -> None:
    assert limit.met is met
