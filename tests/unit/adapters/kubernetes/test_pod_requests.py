"""What a pod asks of its node is counted as the cluster's scheduler counts it."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from controlplane.adapters.clusters.kubernetes.inventory import (
    cpu_and_memory,
    parse_amount,
    pod_requests,
)
from tests.unit.adapters.kubernetes.api_objects import pod


def container(cpu: str, **more: Any) -> dict[str, Any]:
    return {"name": "c", "resources": {"requests": {"cpu": cpu}}, **more}


def cpu_of(**spec: Any) -> Decimal:
    return pod_requests(pod("p", **spec))["cpu"]


@pytest.mark.parametrize(
    ("text", "value"),
    [("1500m", "1.5"), ("2Gi", "2147483648"), ("3", "3"), ("1e3", "1000"), ("5M", "5000000")],
)
def test_amounts_are_read_as_kubernetes_writes_them(text: str, value: str) -> None:
    assert parse_amount(text) == Decimal(value)


def test_an_amount_that_cannot_be_read_is_nothing() -> None:
    assert parse_amount("a lot") == 0


def test_containers_are_added_up_and_of_init_containers_the_largest_counts() -> None:
    two = [container("1"), container("500m")]
    assert cpu_of(containers=two) == Decimal("1.5")
    assert cpu_of(containers=two, initContainers=[container("1"), container("4")]) == 4
    assert cpu_of(containers=two, initContainers=[container("1"), container("1")]) == Decimal("1.5")


def test_a_sidecar_counts_beside_what_comes_after_it_and_beside_the_containers() -> None:
    sidecar = container("1", restartPolicy="Always")
    assert cpu_of(containers=[container("2")], initContainers=[sidecar]) == 3
    after = [sidecar, container("4")]
    assert cpu_of(containers=[container("2")], initContainers=after) == 5
    before = [container("4"), sidecar]
    assert cpu_of(containers=[container("2")], initContainers=before) == 4


def test_overhead_comes_on_top_and_what_the_pod_asks_as_a_whole_goes_before() -> None:
    assert cpu_of(containers=[container("2")], overhead={"cpu": "250m"}) == Decimal("2.25")
    whole = {"requests": {"cpu": "6"}}
    assert cpu_of(containers=[container("2")], resources=whole) == 6


def test_what_is_only_limited_is_asked_for_as_well() -> None:
    limited = {"name": "c", "resources": {"limits": {"nvidia.com/gpu": "2"}}}
    assert pod_requests(pod("p", containers=[limited])) == {"nvidia.com/gpu": 2}


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_an_ended_pod_asks_for_nothing(phase: str) -> None:
    running = pod("p", requests={"cpu": "2", "memory": "1Gi"})
    ended = pod("q", requests={"cpu": "2"}, phase=phase)
    needed = cpu_and_memory(pod_requests(running))
    assert (needed.cpu, needed.memory, pod_requests(ended)) == (2000, 1 << 30, {})
