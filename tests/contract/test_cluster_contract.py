"""What every cluster does, in memory, in a simulation or on a real machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import timedelta

import pytest

from controlplane.ports.clusters import (
    ClusterAdapter,
    ClusterError,
    ExitCause,
    LaunchRefused,
    ReplicaPhase,
)
from controlplane.ports.launches import (
    EngineEnvironment,
    InputArtifact,
    Launch,
    LaunchPlacement,
    LaunchRole,
    ReadinessProbe,
)
from tests.contract.cluster_harness import (
    NODE,
    SLEEPS,
    STUBBORN,
    FakeHarness,
    Harness,
    KubernetesHarness,
    LocalHarness,
    SimulatedHarness,
    ended,
    observed,
    python_role,
)

SLEEPER = Launch(name="sleeper", roles=(python_role(SLEEPS),), labels={"team": "maps", "uid": "7"})
ZERO = timedelta(0)


HARNESSES: Mapping[str, Callable[[], Harness]] = {
    "fake": FakeHarness,
    "local": LocalHarness,
    "simulated": SimulatedHarness,
}
KUBERNETES = "kubernetes"


@pytest.fixture(params=[*HARNESSES, pytest.param(KUBERNETES, marks=pytest.mark.kubernetes)])
def harness(request: pytest.FixtureRequest) -> Iterator[Harness]:
    started: Harness
    if request.param == KUBERNETES:
        live = request.getfixturevalue("live_cluster")
        started = KubernetesHarness(live.kubeconfig.read_text())
    else:
        started = HARNESSES[request.param]()
    try:
        yield started
    finally:
        started.close()


def test_it_is_a_cluster(harness: Harness) -> None:
    assert isinstance(harness.cluster, ClusterAdapter)


def test_the_inventory_names_each_node_and_card_once(harness: Harness) -> None:
    nodes = harness.cluster.inventory()
    names = [node.name for node in nodes]
    assert names == sorted(set(names))
    for node in nodes:
        assert [card.index for card in node.cards] == list(range(2))
        assert node.capacity.cpu > 0
        assert node.capacity.memory > 0


def test_isolation_is_a_sentence(harness: Harness) -> None:
    assert len(harness.cluster.isolation().split()) > 3


def test_a_launch_runs_and_shows_its_labels(harness: Harness) -> None:
    harness.running(SLEEPER)
    launch = observed(harness.cluster, "sleeper")
    (replica,) = launch.replicas
    assert dict(launch.labels) == {"team": "maps", "uid": "7"}
    assert (replica.role, replica.index, replica.phase) == ("main", 0, ReplicaPhase.RUNNING)
    assert replica.started_at is not None
    assert not launch.ended
    assert harness.cluster.names() == {"sleeper"}


def test_launching_twice_is_launching_once(harness: Harness) -> None:
    harness.running(SLEEPER)
    before = observed(harness.cluster, "sleeper").replicas[0].started_at
    harness.cluster.launch(SLEEPER)
    assert observed(harness.cluster, "sleeper").replicas[0].started_at == before


def test_launching_an_ended_launch_does_not_start_it_again(harness: Harness) -> None:
    harness.played("done", output=b"once\n", exit_code=0)
    harness.cluster.launch(replace(SLEEPER, name="done", labels={}))
    assert observed(harness.cluster, "done").ended


def test_an_unknown_launch_is_absent_everywhere(harness: Harness) -> None:
    cluster = harness.cluster
    assert cluster.observe(["nobody"]) == {}
    cluster.stop("nobody", grace=ZERO)
    cluster.remove("nobody")
    chunk = cluster.log("nobody", role="main", index=0, offset=0, limit=10)
    assert (chunk.content, chunk.complete) == (b"", True)
    assert cluster.endpoint("nobody", role="main", index=0, port="http") is None


def test_an_unknown_replica_has_an_empty_complete_log(harness: Harness) -> None:
    harness.running(SLEEPER)
    for role, index in (("other", 0), ("main", 1), ("../main", 0)):
        chunk = harness.cluster.log("sleeper", role=role, index=index, offset=0, limit=10)
        assert (chunk.content, chunk.complete) == (b"", True)


@pytest.mark.parametrize(
    ("exit_code", "cause"),
    [
        (0, ExitCause.FINISHED),
        (3, ExitCause.FAILED),
        (137, ExitCause.KILLED),
        (139, ExitCause.FAILED),
        (143, ExitCause.KILLED),
    ],
)
def test_an_exit_is_reported_with_its_code(
    harness: Harness, exit_code: int, cause: ExitCause
) -> None:
    harness.played("job", output=b"", exit_code=exit_code)
    (replica,) = observed(harness.cluster, "job").replicas
    assert (replica.phase, replica.exit_code, replica.cause) == (
        ReplicaPhase.EXITED,
        exit_code,
        cause,
    )
    assert replica.ended_at is not None
    assert replica.message


def test_a_stopped_launch_ends_as_stopped(harness: Harness) -> None:
    harness.running(SLEEPER)
    harness.cluster.stop("sleeper", grace=timedelta(seconds=30))
    (replica,) = ended(harness.cluster, "sleeper").replicas
    assert replica.cause is ExitCause.STOPPED
    assert replica.exit_code == 143


def test_a_repeated_stop_never_extends_the_first_grace(harness: Harness) -> None:
    harness.running(replace(SLEEPER, roles=(python_role(STUBBORN),)), stubborn=True)
    harness.cluster.stop("sleeper", grace=timedelta(seconds=0.5))
    assert not observed(harness.cluster, "sleeper").ended
    harness.cluster.stop("sleeper", grace=timedelta(hours=1))
    harness.pass_time(timedelta(seconds=1))
    (replica,) = ended(harness.cluster, "sleeper").replicas
    assert (replica.cause, replica.exit_code) == (ExitCause.STOPPED, 137)


def test_stopping_an_ended_launch_changes_nothing(harness: Harness) -> None:
    harness.played("job", output=b"", exit_code=0)
    harness.cluster.stop("job", grace=ZERO)
    assert observed(harness.cluster, "job").replicas[0].cause is ExitCause.FINISHED


def test_only_an_ended_launch_can_be_removed(harness: Harness) -> None:
    harness.running(SLEEPER)
    with pytest.raises(ClusterError, match="has not ended"):
        harness.cluster.remove("sleeper")
    harness.cluster.stop("sleeper", grace=ZERO)
    ended(harness.cluster, "sleeper")
    harness.cluster.remove("sleeper")
    assert harness.cluster.names() == frozenset()
    assert harness.cluster.observe(["sleeper"]) == {}


def test_a_removed_name_can_be_launched_again(harness: Harness) -> None:
    harness.played("job", output=b"first\n", exit_code=1)
    harness.cluster.remove("job")
    harness.played("job", output=b"second\n", exit_code=0)
    chunk = harness.cluster.log("job", role="main", index=0, offset=0, limit=100)
    assert chunk.content == b"second\n"


def test_a_log_is_read_by_offset_up_to_its_end(harness: Harness) -> None:
    harness.played("job", output=b"one\ntwo\nthree\n", exit_code=0)
    first = harness.cluster.log("job", role="main", index=0, offset=0, limit=6)
    assert (first.content, first.next_offset, first.complete) == (b"one\ntw", 6, False)
    rest = harness.cluster.log("job", role="main", index=0, offset=6, limit=100)
    assert (rest.content, rest.next_offset, rest.complete) == (b"o\nthree\n", 14, True)
    after = harness.cluster.log("job", role="main", index=0, offset=14, limit=100)
    assert (after.content, after.next_offset, after.complete) == (b"", 14, True)


@pytest.mark.parametrize(("offset", "content"), [(-6, b"three\n"), (-99, b"one\ntwo\nthree\n")])
def test_a_negative_offset_counts_from_the_end(
    harness: Harness, offset: int, content: bytes
) -> None:
    harness.played("job", output=b"one\ntwo\nthree\n", exit_code=0)
    chunk = harness.cluster.log("job", role="main", index=0, offset=offset, limit=100)
    assert (chunk.content, chunk.next_offset) == (content, 14)


def test_the_log_of_a_running_launch_is_not_complete(harness: Harness) -> None:
    harness.running(SLEEPER)
    assert not harness.cluster.log("sleeper", role="main", index=0, offset=0, limit=9).complete


def test_every_replica_of_a_gang_is_observed(harness: Harness) -> None:
    roles = (python_role(SLEEPS, replicas=2, name="worker"), python_role(SLEEPS, name="head"))
    harness.running(replace(SLEEPER, roles=roles))
    replicas = observed(harness.cluster, "sleeper").replicas
    assert [(each.role, each.index) for each in replicas] == [
        ("worker", 0),
        ("worker", 1),
        ("head", 0),
    ]


def test_an_endpoint_names_the_assigned_port_and_its_credential(harness: Harness) -> None:
    role = python_role(SLEEPS, ports=("http", "metrics"))
    harness.running(
        replace(SLEEPER, roles=(role,), secrets={"NINEFOLD_ENGINE_KEY": "key-of-this-engine"})
    )
    found = [
        harness.cluster.endpoint("sleeper", role="main", index=0, port=port)
        for port in ("http", "metrics", "other")
    ]
    assert found[2] is None
    assert found[0] is not None
    assert found[1] is not None
    assert found[0].url != found[1].url
    assert found[0].url.startswith("http://")
    assert found[0].credential == "key-of-this-engine"


def test_a_launch_that_has_not_ended_cannot_be_continued(harness: Harness) -> None:
    harness.running(SLEEPER)
    with pytest.raises(LaunchRefused, match="stop it first"):
        harness.cluster.launch(replace(SLEEPER, name="next", continues="sleeper"))
    assert harness.cluster.names() == {"sleeper"}


ROLE = SLEEPER.roles[0]
DIGEST = f"sha256:{'a' * 64}"
IMPOSSIBLE = {
    "a name with a slash": replace(SLEEPER, name="../sleeper"),
    "an empty name": replace(SLEEPER, name=""),
    "a long name": replace(SLEEPER, name="a" * 64),
    "an upper-case name": replace(SLEEPER, name="Sleeper"),
    "no roles": replace(SLEEPER, roles=()),
    "two roles of one name": replace(SLEEPER, roles=(ROLE, ROLE)),
    "a role without a command": replace(SLEEPER, roles=(replace(ROLE, argv=()),)),
    "a role without a place": replace(SLEEPER, roles=(replace(ROLE, placements=()),)),
    "a role's name with a slash": replace(SLEEPER, roles=(replace(ROLE, name="a/b"),)),
    "an unknown node": replace(
        SLEEPER, roles=(replace(ROLE, placements=(LaunchPlacement(node="elsewhere"),)),)
    ),
    "an unknown card": replace(
        SLEEPER, roles=(replace(ROLE, placements=(LaunchPlacement(node=NODE, cards=(0, 99)),)),)
    ),
    "a file above": replace(SLEEPER, files={"../spec.json": "{}"}),
    "a file above by a detour": replace(SLEEPER, files={"a/../../spec.json": "{}"}),
    "an absolute file": replace(SLEEPER, files={"/etc/passwd": ""}),
    "an input above": replace(SLEEPER, inputs=(InputArtifact(name="..", files={}),)),
    "an input's file above": replace(
        SLEEPER, inputs=(InputArtifact(name="model", files={"../../x": DIGEST}),)
    ),
    "a digest that is none": replace(
        SLEEPER, inputs=(InputArtifact(name="model", files={"x": "sha256:../../etc"}),)
    ),
    "an engine's name above": replace(
        SLEEPER, engine=EngineEnvironment(name="../../x", preinstall=(), lock="")
    ),
    "a continued name above": replace(SLEEPER, continues="../sleeper"),
    "a probe of an unknown port": replace(
        SLEEPER, roles=(replace(ROLE, probe=ReadinessProbe(port="http", path="/")),)
    ),
    "an unknown port in a command": replace(
        SLEEPER, roles=(replace(ROLE, argv=("serve", "{port:http}")),)
    ),
    "a port of two replicas in a file": replace(
        SLEEPER,
        roles=(python_role(SLEEPS, replicas=2, ports=("http",)),),
        files={"spec.json": "{port:http}"},
    ),
    "a variable with an equals sign": replace(
        SLEEPER, roles=(replace(ROLE, environment={"A=B": "c"}),)
    ),
    "a NUL in the command": replace(
        SLEEPER,
        roles=(LaunchRole(name="main", argv=("a\0b",), placements=(LaunchPlacement(node=NODE),)),),
    ),
}


@pytest.mark.parametrize("launch", IMPOSSIBLE.values(), ids=IMPOSSIBLE.keys())
def test_what_can_never_run_is_refused_and_leaves_nothing(harness: Harness, launch: Launch) -> None:
    with pytest.raises(LaunchRefused):
        harness.cluster.launch(launch)
    assert harness.cluster.names() == frozenset()


def test_a_launch_takes_room_until_it_is_removed(harness: Harness) -> None:
    harness.cluster.launch(SLEEPER)
    assert set(harness.cluster.disk_usage_by_launch([SLEEPER.name, "never-launched"])) == {
        SLEEPER.name
    }
    harness.cluster.stop(SLEEPER.name, grace=ZERO)
    ended(harness.cluster, SLEEPER.name)
    assert harness.cluster.disk_usage_by_launch([SLEEPER.name])[SLEEPER.name] >= 0
    harness.cluster.remove(SLEEPER.name)
    assert harness.cluster.disk_usage_by_launch([SLEEPER.name]) == {}
