"""Rollouts go over nodes batch by batch, stop at the first failure, and return nodes that are done to service."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest

from apps.accounts.models import AuditEntry, User
from apps.accounts.selectors import PermissionRefused
from apps.accounts.services import company_roles_set
from apps.fleet import selectors as fleet
from apps.fleet.models import Card, Cluster, Node
from apps.monitoring.models import Isolation, Rollout, RolloutNode
from apps.monitoring.reconcilers.maintenance_rollouts import maintenance_rollouts_reconcile
from apps.monitoring.services import maintenance_rollouts
from apps.monitoring.services.isolations import drained_isolations_advance, isolations_request
from apps.monitoring.services.maintenance_rollouts import (
    MaintenanceRolloutRefused,
)
from controlplane.domain.common.accelerators import CardState
from controlplane.domain.common.permissions import TeamRole
from controlplane.domain.common.state_machine import IllegalTransition
from controlplane.domain.health.maintenance_rollouts import NodeState, RolloutEvent
from controlplane.ports.clusters import (
    ClusterUnavailable,
    LogChunk,
    ObservedLaunch,
    ObservedReplica,
    ReplicaPhase,
)
from controlplane.ports.launches import Launch
from tests import factories
from tests.cases import for_each_case
from tests.integration.monitoring.wards import NOON, ward

ARGV = ["/usr/bin/update-driver", "--to", "580"]


@dataclass
class Machines:
    """A cluster that keeps what it was asked; ``codes`` is how commands end, by node."""

    codes: dict[str, int] = field(default_factory=dict)
    launches: dict[str, Launch] = field(default_factory=dict)
    begun: list[str] = field(default_factory=list)
    unreachable: bool = False

    def observe(self, names: Sequence[str]) -> Mapping[str, ObservedLaunch]:
        if self.unreachable:
            raise ClusterUnavailable("nobody answers")
        return {name: self._seen(name) for name in names if name in self.launches}

    def _seen(self, name: str) -> ObservedLaunch:
        code = self.codes.get(self._node(name))
        phase = ReplicaPhase.RUNNING if code is None else ReplicaPhase.EXITED
        one = ObservedReplica(role="command", index=0, phase=phase, exit_code=code)
        return ObservedLaunch(name=name, replicas=(one,), labels={})

    def _node(self, name: str) -> str:
        return self.launches[name].roles[0].placements[0].node

    def launch(self, launch: Launch) -> None:
        if launch.name not in self.launches:
            self.begun.append(launch.roles[0].placements[0].node)
        self.launches[launch.name] = launch

    def log(self, name: str, **_: Any) -> LogChunk:
        text = f"updating {self._node(name)}\n".encode()
        return LogChunk(content=text, next_offset=len(text), complete=True)

    def stop(self, name: str, *, grace: timedelta) -> None:
        del grace

    def remove(self, name: str) -> None:
        self.launches.pop(name, None)


@pytest.fixture
def machines(monkeypatch: pytest.MonkeyPatch) -> Machines:
    adapter = Machines()
    monkeypatch.setattr(fleet, "cluster_adapter", lambda _cluster: adapter)
    return adapter


@pytest.fixture
def root(db: None) -> User:
    return factories.user("root", admin=True)


@pytest.fixture
def west(root: User) -> Cluster:
    """Four nodes on two leaves."""
    cluster = ward("west", nodes=4, cards=2, kind="simulated")
    for number in range(4):
        Node.objects.filter(name=f"west-{number}").update(labels={"leaf": f"leaf-{number // 2}"})
    return cluster


def begun(root: User, west: Cluster, **changes: Any) -> Rollout:
    rollout = Rollout(
        **{
            "name": "driver 580",
            "cluster": west,
            "labels": {},
            "argv": ARGV,
            "burn_in": False,
            "domain_label": "leaf",
            **changes,
        }
    )
    maintenance_rollouts.maintenance_rollout_begin(rollout=rollout, actor=root, at=NOON)
    return rollout


def turn(seconds: float) -> None:
    at: datetime = NOON + timedelta(seconds=seconds)
    drained_isolations_advance(at=at)
    maintenance_rollouts_reconcile(at=at)


def states() -> list[str]:
    return list(RolloutNode.objects.order_by("id").values_list("state", flat=True))


def test_one_leaf_after_the_other_and_what_is_done_takes_work_again(
    root: User, west: Cluster, machines: Machines
) -> None:
    rollout = begun(root, west, parallel=2)
    machines.codes = dict.fromkeys((f"west-{n}" for n in range(4)), 0)
    turn(0)
    assert states() == ["draining", "draining", "waiting", "waiting"]
    assert set(Card.objects.filter(node__name="west-0").values_list("state", flat=True)) == {
        CardState.ISOLATED
    }
    turn(5)
    turn(10)
    assert machines.begun == ["west-0", "west-1"]
    for second in range(15, 60, 5):
        turn(second)
    rollout.refresh_from_db()
    assert (rollout.state, states()) == ("done", ["done"] * 4)
    assert machines.begun == ["west-0", "west-1", "west-2", "west-3"]
    assert machines.launches == {}
    assert not Isolation.objects.filter(ended_at=None).exists()
    assert set(Card.objects.values_list("state", flat=True)) == {CardState.USABLE}
    first = rollout.nodes.order_by("id")[0]
    assert (first.exit_code, first.log_tail) == (0, "updating west-0\n")


def test_the_first_failure_stops_the_rest_and_keeps_the_node_out(
    root: User, west: Cluster, machines: Machines
) -> None:
    rollout = begun(root, west)
    machines.codes = {"west-0": 3}
    for second in range(0, 40, 5):
        turn(second)
    rollout.refresh_from_db()
    assert rollout.state == "failed"
    assert states() == ["failed", "skipped", "skipped", "skipped"]
    assert rollout.nodes.order_by("id")[0].reason == "the command failed: exit code 3"
    out = Isolation.objects.get(ended_at=None)
    assert out.node.name == "west-0"
    assert machines.begun == ["west-0"]


def test_a_command_whose_process_is_gone_is_not_run_again(
    root: User, west: Cluster, machines: Machines
) -> None:
    begun(root, west)
    for second in (0, 5, 10):
        turn(second)
    assert states()[0] == "at_work"
    machines.launches.clear()
    turn(15)
    assert states()[0] == "failed"
    assert machines.begun == ["west-0"]


def test_a_cluster_that_is_silent_holds_it_up_and_is_named(
    root: User, west: Cluster, machines: Machines
) -> None:
    rollout = begun(root, west)
    turn(0)
    turn(5)
    machines.unreachable = True
    turn(10)
    rollout.refresh_from_db()
    assert "nobody answers" in rollout.error
    assert states()[0] == "at_work"
    machines.unreachable, machines.codes = False, {"west-0": 0}
    turn(15)
    turn(20)
    rollout.refresh_from_db()
    assert (rollout.error, states()[0]) == ("", "done")


@pytest.mark.parametrize(("passed", "state"), [(True, "done"), (False, "failed")])
def test_a_node_goes_back_only_after_its_burn_in(
    root: User, west: Cluster, machines: Machines, *, passed: bool, state: str
) -> None:
    begun(root, west, argv=[], burn_in=True)
    turn(0)
    turn(5)
    assert states()[0] == "testing"
    row = Isolation.objects.get()
    assert row.test_asked_at is not None
    turn(10)
    assert states()[0] == "testing"
    # As the loop of burn-ins leaves it.
    proved = {"state": "testing", "proved_at": NOON} if passed else {"state": "empty"}
    Isolation.objects.filter(pk=row.pk).update(
        test_asked_at=None, burn_ins=1, evidence={"words": "3 tests"}, **proved
    )
    turn(15)
    assert states()[0] == state
    assert "3 tests" in RolloutNode.objects.order_by("id")[0].reason


def test_where_nothing_can_be_tested_a_person_gives_it_back(
    root: User, west: Cluster, machines: Machines
) -> None:
    begun(root, west, argv=[], burn_in=True)
    turn(0)
    turn(5)
    row = Isolation.objects.get()
    Isolation.objects.filter(pk=row.pk).update(
        test_asked_at=None, burn_ins=1, evidence={"impossible": "no torch"}
    )
    turn(10)
    assert "return the node to service manually" in RolloutNode.objects.order_by("id")[0].reason
    Isolation.objects.filter(pk=row.pk).update(state="returned", ended_at=NOON)
    turn(15)
    assert states()[0] == "done"


def test_paused_nothing_new_begins_and_cancelled_the_rest_is_untouched(
    root: User, west: Cluster, machines: Machines
) -> None:
    rollout = begun(root, west)
    machines.codes = dict.fromkeys((f"west-{n}" for n in range(4)), 0)
    turn(0)
    maintenance_rollouts.maintenance_rollout_control(
        rollout=rollout, event=RolloutEvent.PAUSE, actor=root, at=NOON
    )
    for second in range(5, 30, 5):
        turn(second)
    assert states() == ["done", "waiting", "waiting", "waiting"]
    maintenance_rollouts.maintenance_rollout_control(
        rollout=rollout, event=RolloutEvent.RESUME, actor=root, at=NOON
    )
    turn(30)
    maintenance_rollouts.maintenance_rollout_control(
        rollout=rollout, event=RolloutEvent.CANCEL, actor=root, at=NOON
    )
    for second in range(35, 60, 5):
        turn(second)
    assert states() == ["done", "done", "skipped", "skipped"]
    with pytest.raises(IllegalTransition):
        maintenance_rollouts.maintenance_rollout_control(
            rollout=rollout, event=RolloutEvent.RESUME, actor=root, at=NOON
        )
    actions = AuditEntry.objects.filter(action__startswith="rollout.").order_by("id")
    assert list(actions.values_list("action", flat=True)) == [
        "rollout.begin",
        "rollout.pause",
        "rollout.resume",
        "rollout.cancel",
    ]


def test_what_is_out_of_use_already_is_left_alone(
    root: User, west: Cluster, machines: Machines
) -> None:
    nodes = {node.name: node for node in Node.objects.all()}
    isolations_request(nodes=[nodes["west-0"].uid], reason="smoke", actor=root, at=NOON)
    rollout = begun(root, west, parallel=4)
    assert [row.node.name for row in rollout.nodes.all()] == ["west-1", "west-2", "west-3"]
    isolations_request(nodes=[nodes["west-1"].uid], reason="smoke", actor=root, at=NOON)
    turn(0)
    assert states()[0] == NodeState.FAILED
    assert "was isolated outside this rollout" in rollout.nodes.order_by("id")[0].reason
    assert Isolation.objects.get(node=nodes["west-1"]).ended_at is None


def test_a_command_on_this_machine_is_for_administrators_of_the_company(root: User) -> None:
    here = ward("here", nodes=1)
    team = factories.team()
    otto = factories.user("otto", team=team, role=TeamRole.VIEWER, operator=True)
    with pytest.raises(PermissionRefused, match="only an administrator of the company"):
        begun(otto, here)
    assert begun(otto, here, argv=[], burn_in=True).argv == []
    assert begun(root, here).argv == ARGV
    company_roles_set(user=otto, roles=frozenset(), actor=root)
    with pytest.raises(PermissionRefused):
        begun(otto, here, argv=[], burn_in=True)


@for_each_case(
    ("changes", "wrong"),
    [
        ({"name": " "}, "name"),
        ({"parallel": 0}, "parallel"),
        ({"argv": ("",)}, "argv"),
        ({"argv": ()}, "argv"),
        ({"run_within": 0}, "run_within"),
        ({"labels": {"leaf": "nowhere"}}, "labels"),
    ],
)
def test_what_cannot_be_is_refused_beside_its_field(
    root: User, west: Cluster, changes: Mapping[str, Any], wrong: str
) -> None:
    with pytest.raises(MaintenanceRolloutRefused) as refused:
        begun(root, west, **changes)
    assert refused.value.field == wrong
