from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from random import Random

from gateway.load_balancing import EJECTION_SECONDS, LoadBalancer, RouteWithPools
from gateway.operations import RouteOperation
from gateway.snapshots import (
    RoutingSnapshot,
    SnapshotBackend,
    SnapshotEndpoint,
    SnapshotRoute,
)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def backend_of(uid: str, *, weight: int = 1, endpoints: int = 1) -> SnapshotBackend:
    return SnapshotBackend(
        uid=uid,
        weight=weight,
        model="m",
        endpoints=tuple(
            SnapshotEndpoint(uid=f"{uid}-{index}", url=f"http://{uid}-{index}", credential="")
            for index in range(endpoints)
        ),
    )


def snapshot_of(*backends: SnapshotBackend) -> RoutingSnapshot:
    route = SnapshotRoute(
        name="parser",
        team="team-a",
        context_length=None,
        operations=frozenset(RouteOperation),
        created=0,
        backends=backends,
    )
    return RoutingSnapshot(
        version=1,
        issued_at=datetime(2026, 1, 1, tzinfo=UTC),
        max_stale=timedelta(days=1),
        gateways=1,
        routes=(route,),
        keys=(),
    )


def targets_and_line(
    *backends: SnapshotBackend, clock: Clock | None = None
) -> tuple[LoadBalancer, RouteWithPools]:
    targets = LoadBalancer(monotonic=clock or Clock(), random=Random(7))
    return targets, targets.compile(snapshot_of(*backends)).entries["parser"]


def draws(targets: LoadBalancer, line: RouteWithPools, *, times: int) -> Counter[str]:
    chosen = (targets.choose(line) for _ in range(times))
    return Counter(choice.backend.uid for choice in chosen if choice is not None)


def test_backends_are_drawn_by_weight() -> None:
    targets, line = targets_and_line(
        backend_of("nine", weight=90), backend_of("one", weight=10), backend_of("off", weight=0)
    )
    counts = draws(targets, line, times=10_000)
    assert 8_800 < counts["nine"] < 9_200
    assert counts["nine"] + counts["one"] == 10_000


def test_endpoint_with_fewest_requests_is_chosen_and_ties_rotate() -> None:
    targets, line = targets_and_line(backend_of("b", endpoints=3))
    busy = line.pools[0].targets[1]
    busy.outstanding = 1
    chosen = [choice.target for _ in range(4) if (choice := targets.choose(line)) is not None]
    first, _, third = line.pools[0].targets
    assert chosen == [first, third, first, third]
    first.outstanding = third.outstanding = 2
    choice = targets.choose(line)
    assert choice is not None
    assert choice.target is busy


def test_ejected_endpoint_gets_no_requests_until_ejection_ends() -> None:
    clock = Clock()
    targets, line = targets_and_line(backend_of("b", endpoints=2), clock=clock)
    bad, good = line.pools[0].targets
    targets.eject(bad)
    assert {choice.target for _ in range(5) if (choice := targets.choose(line)) is not None} == {
        good
    }
    clock.now += EJECTION_SECONDS
    choice = targets.choose(line)
    assert choice is not None
    assert choice.target is bad


def test_share_of_unavailable_backend_goes_to_others() -> None:
    targets, line = targets_and_line(backend_of("down", weight=99), backend_of("up", weight=1))
    targets.eject(line.pools[0].targets[0])
    assert draws(targets, line, times=50) == {"up": 50}


def test_available_backend_gets_its_share_again() -> None:
    clock = Clock()
    targets, line = targets_and_line(
        backend_of("stable", weight=3), backend_of("canary", weight=1), clock=clock
    )
    targets.eject(line.pools[1].targets[0])
    assert draws(targets, line, times=400) == {"stable": 400}
    clock.now += EJECTION_SECONDS
    # Five standard deviations of 400 draws.
    assert 57 < draws(targets, line, times=400)["canary"] < 143


def test_no_choice_without_available_endpoint() -> None:
    targets, line = targets_and_line(backend_of("off", weight=0), backend_of("none", endpoints=0))
    assert targets.choose(line) is None
    targets, line = targets_and_line(backend_of("b"))
    assert targets.choose(line, exclude=line.pools[0].targets) is None


def test_endpoint_state_outlives_its_snapshot() -> None:
    targets, line = targets_and_line(backend_of("b"))
    target = line.pools[0].targets[0]
    target.outstanding = 5
    again = targets.compile(snapshot_of(backend_of("new"), backend_of("b"))).entries["parser"]
    assert again.pools[1].targets[0] is target


def test_open_requests_are_counted_after_their_endpoint_left_the_snapshot() -> None:
    targets, line = targets_and_line(backend_of("b", endpoints=2))
    first, second = line.pools[0].targets
    for target in (first, first, second):
        targets.begin_request(target)
    assert targets.draining_requests() == {}, "the snapshot names both"
    targets.compile(snapshot_of(backend_of("new")))
    uids = first.endpoint.uid, second.endpoint.uid
    assert targets.draining_requests() == {uids[0]: 2, uids[1]: 1}
    targets.end_request(first)
    targets.end_request(second)
    assert targets.draining_requests() == {uids[0]: 1}
    targets.end_request(first)
    assert targets.draining_requests() == {}
    # A retry may choose from the table with which its request began.
    targets.begin_request(second)
    assert targets.draining_requests() == {uids[1]: 1}
