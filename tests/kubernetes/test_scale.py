"""The benchmark of a large cluster, at small size: every figure is had, and a job costs few calls."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from tests.benchmarks.kubernetes import scale
from tests.benchmarks.kubernetes.scale import LIMITS, Size
from tests.kubernetes.crowds import H800, Crowd

pytestmark = pytest.mark.kubernetes

SMALL = Size(nodes=H800.count, launches=24, alone=6)


def test_a_job_costs_few_calls_and_all_are_observed_with_few(crowd: Crowd) -> None:
    found = scale.measure(crowd, H800, SMALL, say=print)
    cluster = scale.connected(crowd)
    try:
        assert found.calls_to_launch <= LIMITS["calls_to_launch"], found
        assert found.calls_to_end <= LIMITS["calls_to_end"], found
        assert found.calls_to_observe_all <= 2, found
        assert all(value > 0 for value in asdict(found).values()), found
    finally:
        left = cluster.names()
        for name in left:
            crowd.end("ninefold-bench", f"{name}-trainer-0")
        for name in left:
            cluster.remove(name)
    assert len(left) == SMALL.launches - SMALL.alone
