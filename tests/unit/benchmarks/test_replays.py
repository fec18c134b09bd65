"""The replay of waits on a week that fits in a test: everybody starts, and the books hold."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given as for_any
from hypothesis import settings
from hypothesis import strategies as st

from controlplane.domain.scheduling.plans import ClaimPlacement
from controlplane.domain.scheduling.snapshots import ReplicaPlacement
from tests.benchmarks.scheduling.easy import Easy, easy
from tests.benchmarks.scheduling.forecast_accuracy import Foretelling
from tests.benchmarks.scheduling.invariants import Broken, Ledger
from tests.benchmarks.scheduling.philly import (
    Job,
    Pool,
    between,
    in_line,
    least_left_first,
    load,
)
from tests.benchmarks.scheduling.quality import Measured
from tests.benchmarks.scheduling.replays import Replay, ReplayLedger
from tests.benchmarks.scheduling.traces import DataAbsent, NodeShape, PodShape
from tests.benchmarks.scheduling.traces import load as load_trace
from tests.properties import examples

NODES = 3


def jobs(count: int, *, seed: int = 1) -> tuple[Job, ...]:
    """More than three nodes can run at once; now and then a gang of two nodes."""
    random = np.random.default_rng(seed)
    arrives = np.cumsum(random.exponential(120, size=count))
    return tuple(
        Job(
            number=number,
            queue=f"team-{random.integers(3)}",
            arrives=float(arrives[number]),
            duration=float(random.choice((60, 600, 7200), p=(0.6, 0.3, 0.1))),
            cards=int(random.choice((1, 2, 8, 16), p=(0.7, 0.15, 0.1, 0.05))),
        )
        for number in range(count)
    )


def job(*, cards: int, number: int = 0, arrives: float = 0, duration: float = 60) -> Job:
    return Job(number=number, queue="team", arrives=arrives, duration=duration, cards=cards)


def given(*cards: str) -> ClaimPlacement:
    replica = ReplicaPlacement(role="worker", index=0, node="node", cards=cards)
    return ClaimPlacement(claim="job-0", chip="gpu", replicas=(replica,), reason="")


def test_a_replay_starts_everybody_and_breaks_no_rule() -> None:
    trace = jobs(150)
    replay = Replay(trace, nodes=NODES, every=30)
    pending_times = replay.run()
    assert (pending_times >= 0).all()
    assert replay.cycles > 10


def test_a_replay_is_the_same_again() -> None:
    trace = jobs(60)
    first = Replay(trace, nodes=NODES, every=30).run()
    assert (first == Replay(trace, nodes=NODES, every=30).run()).all()


def test_the_oracle_waits_least_and_strict_order_most() -> None:
    trace = jobs(300)
    strict = in_line(trace, nodes=NODES, passing=False).mean()
    passing = in_line(trace, nodes=NODES, passing=True).mean()
    oracle = least_left_first(trace, nodes=NODES).mean()
    assert oracle <= passing <= strict
    assert strict > 0


def test_strict_order_holds_up_whoever_comes_behind() -> None:
    trace = (
        job(cards=16, duration=100),
        job(cards=16, number=1, arrives=1, duration=10),
        job(cards=1, number=2, arrives=2),
    )
    assert in_line(trace, nodes=NODES, passing=False).tolist() == [0, 99, 98]
    assert in_line(trace, nodes=NODES, passing=True).tolist() == [0, 99, 0]


def test_easy_passes_nobody_while_nothing_is_known_of_runtimes() -> None:
    trace = (
        job(cards=8, duration=100),
        job(cards=24, number=1, arrives=1, duration=10),
        job(cards=8, number=2, arrives=2, duration=5),
    )
    assert easy(trace, nodes=NODES).tolist() == [0, 99, 108]
    smaller = (trace[0], job(cards=16, number=1, arrives=1, duration=10), trace[2])
    assert easy(smaller, nodes=NODES).tolist() == [0, 0, 9]


def test_easy_starts_behind_the_first_what_is_expected_to_end_before_it() -> None:
    line = Easy(1)
    long, first, short = (job(cards=each, number=each) for each in (5, 8, 1))
    line.waiting = [(long, 100.0)]
    assert line.start_all(0) == [long]
    line.waiting = [(first, 10.0), (job(cards=2, number=2), 120.0), (short, 50.0)]
    assert line.start_all(10) == [short]
    assert line.shadow(10).time == 100
    line.end(short)
    # It has outlived its estimate: now it is expected to run twice as long.
    assert line.shadow(150).time == 200


@settings(max_examples=examples(40), deadline=None)
@for_any(seed=st.integers(0, 10_000))
def test_with_true_runtimes_easy_never_moves_a_reservation_back(seed: int) -> None:
    random = np.random.default_rng(seed)
    line, now = Easy(NODES), 0.0
    reserved: dict[int, float] = {}
    for each in jobs(40, seed=seed):
        now += float(random.exponential(30))
        for ended in [
            one for one in line.running.values() if one.started + one.job.duration <= now
        ]:
            line.end(ended.job)
        line.waiting.append((each, each.duration))
        line.start_all(now)
        if line.waiting:
            first, time = line.waiting[0][0].number, line.shadow(now).time
            assert time <= max(now, reserved.get(first, time)) + 1e-6
            reserved[first] = time


def test_the_oracle_stops_the_long_for_the_short() -> None:
    trace = (job(cards=24, duration=100), job(cards=24, number=1, arrives=10, duration=5))
    assert least_left_first(trace, nodes=NODES).tolist() == pytest.approx([5, 0])


def test_a_pool_gives_the_fullest_node_and_takes_back_what_it_gave() -> None:
    pool = Pool(2)
    small, large = job(cards=1), job(cards=16, number=1)
    first = pool.take(small)
    assert pool.take(small) == first
    assert pool.take(large) is None
    pool.give(small, first or ())
    pool.give(small, first or ())
    assert pool.take(large) == (0, 1)


def test_the_books_refuse_part_of_a_gang() -> None:
    with pytest.raises(Broken, match="wants 2 cards and got 1"):
        ReplayLedger(cap=8).enter(job(cards=2), given("a"))


def test_the_books_refuse_a_card_that_somebody_has() -> None:
    ledger = ReplayLedger(cap=8)
    ledger.enter(job(cards=1), given("a"))
    with pytest.raises(Broken, match="a has job-0"):
        ledger.enter(job(cards=1), given("a"))


def test_the_books_refuse_a_queue_above_its_cap() -> None:
    with pytest.raises(Broken, match="above 1"):
        ReplayLedger(cap=1).enter(job(cards=2), given("a", "b"))


def test_the_ledger_refuses_shares_that_do_not_fit_on_their_card() -> None:
    node = NodeShape(name="n", cpu=8000, memory=1024, cards=1, model="m")
    share = PodShape(cpu=1000, memory=1, cards=1, milli=600, models=())
    placed = (ReplicaPlacement(role="pod", index=0, node="n", cards=("n/0",)),)
    ledger = Ledger.of([node])
    ledger.enter(share, placed)
    with pytest.raises(Broken, match="given out twice"):
        ledger.enter(share, placed)


def test_forecasts_of_a_replay_are_held_against_what_came() -> None:
    trace = jobs(120)
    watch = Foretelling(trace, every=1800)
    pending_times = Replay(trace, nodes=NODES, every=30, watch=watch).run()
    errors = watch.errors(pending_times)
    assert errors.claims > 0
    assert errors.forecast >= 0
    assert errors.median_wait > 0


def test_a_span_of_jobs_is_numbered_anew() -> None:
    trace = jobs(50)
    chosen = between(trace, 600, 3000)
    assert [each.number for each in chosen] == list(range(len(chosen)))
    assert all(0 <= each.arrives < 2400 for each in chosen)


@pytest.mark.parametrize("read", [load, lambda folder: load_trace(folder, "default")])
def test_absent_data_is_named(read: object, tmp_path: Path) -> None:
    assert callable(read)
    with pytest.raises(DataAbsent, match="is not there: pass the folder"):
        read(tmp_path)


def test_a_reference_that_is_far_from_its_published_mean_is_not_reproduced() -> None:
    measured = {"trace": "default", "policy": "FGD", "published": 95.2, "seconds": 1.0}
    near = Measured(allocation=(95.0, 95.2, 95.3), **measured)  # type: ignore[arg-type]
    far = Measured(allocation=(93.0, 93.1, 93.2), **measured)  # type: ignore[arg-type]
    assert near.reproduced
    assert not far.reproduced
