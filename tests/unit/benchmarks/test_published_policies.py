"""The published policies beside which ours is measured do what was published, on a cluster that fits in a test."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.benchmarks.scheduling import ninefold, references
from tests.benchmarks.scheduling.references import Cluster, Fragmentation, Gradient, allocation
from tests.benchmarks.scheduling.traces import NodeShape, PodShape, Trace, typical

SHAPES = (
    PodShape(cpu=4000, memory=8192, cards=1, milli=1000, models=()),
    PodShape(cpu=3000, memory=8192, cards=1, milli=350, models=()),
    PodShape(cpu=6000, memory=8192, cards=1, milli=700, models=("small",)),
    PodShape(cpu=16000, memory=32768, cards=4, milli=1000, models=()),
    PodShape(cpu=9000, memory=8192, cards=0, milli=0, models=()),
)
NODES = tuple(
    NodeShape(name=f"node-{number}", cpu=64_000, memory=262_144, cards=8, model="large")
    for number in range(6)
) + tuple(
    NodeShape(name=f"node-{number}", cpu=48_000, memory=131_072, cards=2, model="small")
    for number in range(6, 14)
)
TRACE = Trace(
    name="small",
    nodes=NODES,
    shapes=SHAPES,
    pods=np.random.default_rng(3).choice(len(SHAPES), size=60, p=(0.3, 0.3, 0.15, 0.1, 0.15)),
)


def by_definition(cluster: Cluster, node: int, pods: list[tuple[PodShape, float]]) -> float:
    """Fragmentation of a node, pod by pod and card by card."""
    cards = cluster.cards[node].tolist()
    model = cluster.models[cluster.model[node]]
    fragments = 0.0
    for pod, weight in pods:
        able = [left for left in cards if pod.cards and left >= pod.milli]
        fits = (
            bool(able)
            and pod.accepts(model)
            and cluster.cpu[node] >= pod.cpu
            and len(able) >= pod.cards
        )
        unfit = sum(left for left in cards if left < pod.milli) if fits else sum(cards)
        fragments += weight * unfit
    return fragments


def test_tables_of_fragmentation_agree_with_its_definition() -> None:
    cluster, random = Cluster(NODES), np.random.default_rng(5)
    pods = [(shape, 0.2) for shape in SHAPES]
    fragmentation = Fragmentation(pods, cluster.models)
    for _ in range(80):
        shape = SHAPES[random.integers(len(SHAPES))]
        fits = cluster.fits(shape, cluster.accepts(shape))
        if fits.any():
            node = int(random.choice(np.flatnonzero(fits)))
            cluster.take(node, shape, int((cluster.cards[node] >= shape.milli).argmax()))
    every = np.arange(len(NODES))
    high = fragmentation.usable[cluster.cards].sum(axis=1)
    found = fragmentation.of(high, left=cluster.left, cpu=cluster.cpu, model=cluster.model)
    expected = [by_definition(cluster, int(node), pods) for node in every]
    assert found == pytest.approx(expected)


def test_scores_that_were_kept_choose_as_fresh_ones_do() -> None:
    cached = Gradient(Cluster(NODES), Fragmentation(typical(TRACE), Cluster(NODES).models))
    for place in TRACE.arrivals(1):
        shape = TRACE.shapes[place]
        fits = cached.cluster.fits(shape, cached.cluster.accepts(shape))
        if fits.any():
            fresh = Gradient(cached.cluster, cached.fragmentation)
            chosen = cached.choose(shape, fits)
            assert chosen == fresh.choose(shape, fits)
            cached.cluster.take(chosen[0], shape, chosen[1])


@pytest.mark.parametrize("seed", [42, 43])
def test_pods_arrive_until_they_ask_for_130_percent_of_the_cards(seed: int) -> None:
    demand = np.array([shape.demand for shape in SHAPES])
    arrivals = TRACE.arrivals(seed)
    asked = demand[arrivals].sum() / (TRACE.cards * 1000)
    assert 1.3 - max(demand) / (TRACE.cards * 1000) <= asked <= 1.3


def test_a_trace_that_asks_for_too_much_loses_pods_at_random() -> None:
    crowded = replace(TRACE, pods=np.tile(TRACE.pods, 4))
    demand = np.array([shape.demand for shape in SHAPES])
    arrivals = crowded.arrivals(42)
    assert len(arrivals) < len(crowded.pods)
    assert demand[arrivals].sum() <= 1.3 * TRACE.cards * 1000


def test_the_order_of_arrival_depends_on_the_seed_alone() -> None:
    assert (TRACE.arrivals(42) == TRACE.arrivals(42)).all()
    assert TRACE.arrivals(42).tolist() != TRACE.arrivals(43).tolist()


def test_typical_pods_are_the_most_frequent_and_weigh_one_together() -> None:
    found = typical(TRACE, popularity=0.5)
    assert sum(weight for _, weight in found) == pytest.approx(1)
    assert len(found) < len(SHAPES)
    assert [weight for _, weight in found] == sorted((weight for _, weight in found), reverse=True)


@pytest.mark.parametrize("policy", list(references.FACTORIES))
def test_no_policy_uses_more_than_was_asked_for_or_is_there(policy: str) -> None:
    asked, used = references.run(policy, TRACE, 42)
    assert (used <= asked).all()
    assert used[-1] <= TRACE.cards * 1000
    assert (np.diff(used) >= 0).all()


def test_ours_fills_the_cluster_better_than_chance_and_keeps_the_books() -> None:
    """The run enters every placement in a ledger that refuses a card given twice."""
    mine = [allocation(*ninefold.run(TRACE, seed), cards=TRACE.cards) for seed in range(5)]
    chance = [
        allocation(*references.run("Random", TRACE, seed), cards=TRACE.cards) for seed in range(5)
    ]
    assert np.mean(mine) > np.mean(chance)
