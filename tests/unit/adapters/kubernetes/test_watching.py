"""How a watch goes on after each end, what it marks, and how long it pauses."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from urllib3.exceptions import (
    ConnectTimeoutError,
    NewConnectionError,
    ProtocolError,
    ReadTimeoutError,
)

from controlplane.adapters.clusters.kubernetes.api import ApiRefused, MalformedResponse
from controlplane.adapters.clusters.kubernetes.object_names import LAUNCH
from controlplane.adapters.clusters.kubernetes.watch_streams import (
    Backoff,
    PendingChanges,
    WatchEndReason,
    classify_watch_end,
)
from controlplane.adapters.clusters.kubernetes.watcher import (
    WatchedLaunchPods,
    WatchedNodes,
    node_digest,
)
from controlplane.ports.clusters import ClusterUnavailable


def unavailable(cause: Exception | None) -> ClusterUnavailable:
    error = ClusterUnavailable("the API server is unreachable")
    error.__cause__ = cause
    return error


def refused(status: int) -> ApiRefused:
    return ApiRefused(status=status, reason="", message="no")


#: urllib3 says which pool and which connection failed; nobody here asks.
ANY: Any = None


@pytest.mark.parametrize(
    ("error", "lifetime", "end"),
    [
        (None, 240.0, WatchEndReason.ON_SCHEDULE),
        (None, 239.0, WatchEndReason.ON_SCHEDULE),
        (None, 100.0, WatchEndReason.EARLY),
        (ReadTimeoutError(ANY, "/", "read timed out"), 75.0, WatchEndReason.IDLE),
        (ProtocolError("ended prematurely"), 3.0, WatchEndReason.BROKEN),
        (ConnectionResetError(104, "reset by peer"), 3.0, WatchEndReason.BROKEN),
        (unavailable(ReadTimeoutError(ANY, "/", "read timed out")), 15.0, WatchEndReason.HALF_OPEN),
        (unavailable(NewConnectionError(ANY, "refused")), 0.0, WatchEndReason.UNREACHABLE),
        (unavailable(ConnectTimeoutError("timed out")), 5.0, WatchEndReason.UNREACHABLE),
        (unavailable(ProtocolError("aborted")), 0.1, WatchEndReason.BROKEN),
        (unavailable(ValueError("no JSON")), 0.1, WatchEndReason.GARBLED),
        (unavailable(None), 0.1, WatchEndReason.BUSY),
        (refused(410), 0.1, WatchEndReason.EXPIRED),
        (refused(403), 0.1, WatchEndReason.REFUSED),
        (refused(401), 0.1, WatchEndReason.REFUSED),
        (MalformedResponse("<html>"), 0.1, WatchEndReason.GARBLED),
        (KeyError("metadata"), 0.1, WatchEndReason.GARBLED),
    ],
)
def test_every_end_has_its_name(
    error: Exception | None, lifetime: float, end: WatchEndReason
) -> None:
    assert classify_watch_end(error, lifetime=lifetime, requested=240.0) is end


@pytest.mark.parametrize("lifetime", [0.1, 60.0])
@pytest.mark.parametrize("end", list(WatchEndReason))
def test_every_end_has_its_next_step(end: WatchEndReason, lifetime: float) -> None:
    pauses = end.pauses(lifetime=lifetime)
    assert end.lists == (
        end in {WatchEndReason.EXPIRED, WatchEndReason.REFUSED, WatchEndReason.GARBLED}
    )
    if end in {WatchEndReason.ON_SCHEDULE, WatchEndReason.IDLE}:
        assert not pauses
    elif end in {WatchEndReason.EARLY, WatchEndReason.EXPIRED}:
        assert pauses == (lifetime < 5.0)
    else:
        assert pauses


def test_what_fails_at_once_again_and_again_never_becomes_a_busy_loop() -> None:
    instant = {end for end in WatchEndReason if not end.pauses(lifetime=0.0)}
    # Both take as long as was asked for, by what they are.
    assert instant == {WatchEndReason.ON_SCHEDULE, WatchEndReason.IDLE}


@given(chance=st.floats(0.0, 1.0, exclude_max=True), failures=st.integers(1, 2000))
def test_pauses_grow_from_a_second_to_half_a_minute_and_no_further(
    chance: float, failures: int
) -> None:
    pauses = Backoff(chance=lambda: chance)
    said = [pauses.next() for _ in range(failures)]
    assert 1.0 <= said[0] <= 2.0
    assert all(1.0 <= pause <= 30.0 for pause in said)
    assert said == sorted(said)
    pauses.reset()
    assert pauses.next() == said[0]


def test_clients_that_lost_a_server_together_do_not_return_together() -> None:
    assert len({Backoff().next() for _ in range(20)}) > 10


def test_a_name_marked_many_times_is_taken_once_and_then_no_more() -> None:
    changes = PendingChanges()
    for _ in range(3):
        changes.launches(["a", "b"])
    assert changes.pending.is_set()
    assert changes.take() == (frozenset({"a", "b"}), False)
    assert not changes.pending.is_set()
    changes.launches([])
    assert not changes.pending.is_set()
    changes.nodes()
    assert changes.pending.is_set()
    assert changes.take() == (frozenset(), True)
    assert changes.take() == (frozenset(), False)


def test_no_name_is_lost_between_those_who_mark_and_the_one_who_takes() -> None:
    changes, taken = PendingChanges(), set[str]()

    def write(part: int) -> None:
        for number in range(2000):
            changes.launches([f"{part}-{number}"])

    writers = [threading.Thread(target=write, args=(part,)) for part in range(3)]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        taken |= changes.take()[0]
    taken |= changes.take()[0]
    assert len(taken) == 6000


def pod(launch: str) -> dict[str, Any]:
    return {"metadata": {"labels": {LAUNCH: launch}}}


def listed(resource: WatchedLaunchPods, *launches: str) -> None:
    resource.replace(
        {
            name: each
            for launch in launches
            for name, each in resource.stored_state(pod(launch)).items()
        }
    )


def test_a_listing_marks_what_is_there_and_what_is_there_no_more() -> None:
    changes = PendingChanges()
    resource = WatchedLaunchPods(installation="east", changes=changes)
    listed(resource, "a", "b")
    resource.changed("ADDED", pod("c"))
    assert changes.take()[0] == {"a", "b", "c"}

    listed(resource, "b")
    assert changes.take()[0] == {"a", "b", "c"}
    listed(resource, "b")
    assert changes.take()[0] == {"b"}


def test_a_pod_without_labels_marks_nothing() -> None:
    changes = PendingChanges()
    WatchedLaunchPods(installation="east", changes=changes).changed("ADDED", {"metadata": {}})
    assert not changes.pending.is_set()


def node(**changes: Any) -> dict[str, Any]:
    manifest: dict[str, Any] = {
        "metadata": {"name": "n1", "uid": "u", "resourceVersion": "1", "labels": {"zone": "a"}},
        "spec": {},
        "status": {
            "allocatable": {"nvidia.com/gpu": "8"},
            "conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": "1"}],
        },
    }
    for path, value in changes.items():
        where, _, key = path.partition("__")
        manifest[where] = {**manifest[where], key: value}
    return manifest


@pytest.mark.parametrize(
    "same",
    [
        node(),
        node(metadata__resourceVersion="2"),
        node(
            status__conditions=[{"type": "Ready", "status": "True", "lastHeartbeatTime": "2"}],
        ),
        node(status__images=[{"names": ["another"]}]),
        node(metadata__managedFields=[{}]),
    ],
)
def test_a_heartbeat_leaves_the_digest_of_a_node_as_it_was(same: dict[str, Any]) -> None:
    assert node_digest(same) == node_digest(node())


@pytest.mark.parametrize(
    "other",
    [
        node(metadata__uid="another machine of that name"),
        node(metadata__labels={"zone": "b"}),
        node(metadata__annotations={"ninefold.io/rings": "0-3_4-7"}),
        node(metadata__deletionTimestamp="now"),
        node(spec__unschedulable=True),
        node(spec__taints=[{"key": "k", "effect": "NoSchedule"}]),
        node(status__allocatable={"nvidia.com/gpu": "7"}),
        node(status__conditions=[{"type": "Ready", "status": "Unknown"}]),
    ],
)
def test_what_matters_of_a_node_changes_its_digest(other: dict[str, Any]) -> None:
    assert node_digest(other) != node_digest(node())


def test_a_node_that_was_deleted_twice_is_news_once() -> None:
    changes = PendingChanges()
    nodes = WatchedNodes(changes=changes)
    nodes.changed("ADDED", node())
    assert changes.take()[1]
    nodes.changed("DELETED", node())
    assert changes.take()[1]
    nodes.changed("DELETED", node())
    assert not changes.pending.is_set()
