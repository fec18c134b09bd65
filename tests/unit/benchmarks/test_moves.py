"""The benchmark of defragmentation, at small size."""

from __future__ import annotations

from tests.benchmarks.scheduling import relocations
from tests.benchmarks.scheduling.companies import Company


def test_few_moves_make_more_nodes_whole() -> None:
    fleet = relocations.measure(nodes=64, seed=42)
    assert 0 < fleet.moves <= max(1, round(relocations.MOVED * fleet.running))
    assert fleet.whole_on > fleet.whole_off
    assert fleet.cost > 0


def test_a_thinned_fleet_holds_nothing_of_what_has_ended() -> None:
    snapshot = relocations.thinned(Company(nodes=32), seed=42)
    running = {claim.uid for claim in snapshot.running}
    holders = {card.held_by for node in snapshot.nodes for card in node.cards if card.held_by}
    assert holders == running
    assert all(claim.checkpointed_at for claim in snapshot.running)
