"""The benchmarks of queues at small size: that they play what they say, against the real scheduler."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from django.db import connection

from apps.quotas.models import Allocation, Claim, UsageRecord
from controlplane.domain.quotas.claims import ClaimState
from controlplane.outbox import messages
from tests.benchmarks.queues import cycles, players, schedulers
from tests.benchmarks.queues.bells import Bell
from tests.benchmarks.queues.loads import BASELINE, LOADS, TOPOLOGY, Fleet, Load
from tests.benchmarks.queues.processors import spent

#: Seconds.
PATIENCE = 120.0
BASELINE_SMALL = BASELINE.thinned(cohorts=1, queues=2, one_in=25, fleet=Fleet(nodes=1, cards=100))
TOPOLOGY_SMALL = TOPOLOGY.thinned(
    cohorts=1, queues=2, one_in=17, fleet=Fleet(nodes=20, cards=16, racks=2)
)


@contextmanager
def scheduler(changes: Bell) -> Iterator[Future[schedulers.Measurements]]:
    """A thread that schedules until the block is left; everybody's commits wake everybody."""
    work = Bell.hung()

    def run() -> schedulers.Measurements:
        try:
            return schedulers.schedule(work)
        finally:
            connection.close()

    messages.set_after_publish_callbacks(work.ring, changes.ring)
    with ThreadPoolExecutor(max_workers=1) as pool:
        future = pool.submit(run)
        try:
            yield future
        finally:
            messages.set_after_publish_callbacks()
            os.close(work.rung)
        future.result(timeout=PATIENCE)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("load", [BASELINE_SMALL, TOPOLOGY_SMALL], ids=lambda load: load.name)
def test_every_piece_is_admitted_and_ends_and_the_ledger_has_what_was_held(
    load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The owners subscribe to topics of their own.
    monkeypatch.setattr(messages, "_subscribed_topics", set())
    owners = players.prepared(load)
    before = spent()
    with scheduler(owners.changes) as measurements:
        seconds = owners.run(within=PATIENCE)
    played = players.measurements_of(owners, seconds=seconds, processors=spent().since(before))

    assert played.pieces == load.pieces == len(owners.finished)
    assert measurements.result().admitted == played.pieces + played.evictions
    assert set(played.waiting_times) == {work.name for work in load.sets}
    held = sum(
        round((each.released_at - each.allocated_at).total_seconds() * 1e6)
        for each in Allocation.objects.all()
        if each.released_at
    )
    assert held == sum(UsageRecord.objects.values_list("card_microseconds", flat=True)) > 0
    at_least = sum(work.count * work.replicas * work.cards for work in load.sets)
    assert Allocation.objects.count() >= load.cohorts * load.queues * at_least


@pytest.mark.django_db(transaction=True)
def test_full_cycles_say_what_they_did_and_how_long_each_phase_took() -> None:
    first, second = cycles.measured_cycles(nodes=16, waiting=60, iterations=2)
    assert first.waiting == second.waiting == 60
    assert first.admitted + first.refused == 60
    assert first.admitted > 0
    assert set(first.seconds) == set(cycles.PHASES)
    assert first.total > 0
    explained = Claim.objects.filter(state=ClaimState.PENDING).exclude(explanation="")
    assert explained.count() >= second.refused


@pytest.mark.parametrize(
    ("name", "pieces", "shortest"),
    [
        ("baseline", 15_000, 66),
        ("large", 50_000, 4.0),
        ("topology", 15_000, 66),
        ("topology-hurried", 15_000, 6.6),
    ],
)
def test_a_load_is_as_published(name: str, pieces: int, shortest: float) -> None:
    load = LOADS[name]
    assert load.pieces == pieces == sum(1 for _ in load.timetable())
    assert load.shortest == pytest.approx(shortest, rel=0.05)
    room = load.fleet.nodes * load.fleet.cards
    assert room >= 1.2 * load.cohorts * load.queues * load.guaranteed
