"""Our mark on a node comes and goes, and what others wrote there stays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

import pytest

from controlplane.adapters.clusters.kubernetes import isolation_taints
from controlplane.adapters.clusters.kubernetes.api import ApiAccessDenied, ApiRefused, KubernetesApi
from controlplane.adapters.clusters.kubernetes.inventory import observed_nodes
from controlplane.adapters.clusters.kubernetes.kubeconfig import ApiAccess
from controlplane.ports.clusters import ClusterUnavailable
from tests.unit.adapters.kubernetes.api_objects import OURS, node

THEIRS = "another-installation"
TEAMS = {"key": "team", "value": "a", "effect": "NoSchedule"}
CORDON = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


class OneNode(KubernetesApi):
    """A server with one node, whose version counts; ``meanwhile`` is what others do between a read and a write."""

    def __init__(self, there: Mapping[str, Any] | None) -> None:
        super().__init__(ApiAccess(server="https://cluster.invalid"))
        self.node = None if there is None else deepcopy(dict(there))
        self.version = 1
        self.writes = 0
        self.meanwhile: Callable[[], None] = lambda: None

    def others_write(self, *taints: Mapping[str, str]) -> None:
        assert self.node is not None
        self.node["spec"]["taints"] += taints
        self.version += 1

    def _request_json(self, method: str, path: str, **rest: Any) -> dict[str, Any]:
        if method == "PATCH":
            meanwhile, self.meanwhile = self.meanwhile, lambda: None
            meanwhile()
        if self.node is None:
            raise ApiRefused(status=404, reason="NotFound", message=f"{path} is not there")
        if method == "PATCH":
            self._patch(rest["body"])
        found = deepcopy(self.node)
        found["metadata"]["resourceVersion"] = str(self.version)
        return found

    def _patch(self, body: Mapping[str, Any]) -> None:
        assert self.node is not None
        if body["metadata"]["resourceVersion"] != str(self.version):
            raise ApiRefused(status=409, reason="Conflict", message="the object has been modified")
        self.version += 1
        self.writes += 1
        self.node["spec"]["taints"] = list(body["spec"]["taints"] or ())
        for name, value in body["metadata"]["annotations"].items():
            self.node["metadata"]["annotations"].pop(name, None)
            if value is not None:
                self.node["metadata"]["annotations"][name] = value

    @property
    def taints(self) -> list[Mapping[str, str]]:
        assert self.node is not None
        return list(self.node["spec"]["taints"])


def mark(api: KubernetesApi, reason: str = "80E01801 on card 3") -> bool:
    return isolation_taints.write_isolation_taint(api, "n1", installation=OURS, reason=reason)


def unmark(api: KubernetesApi) -> None:
    isolation_taints.write_isolation_taint(api, "n1", installation=OURS, reason=None)


def test_a_mark_keeps_new_work_away_and_says_whose_it_is_and_why() -> None:
    api = OneNode(node("n1", taints=[TEAMS]))
    assert mark(api)
    own = {"key": "ninefold.io/isolated", "value": OURS, "effect": "NoSchedule"}
    assert api.taints == [TEAMS, own]
    assert api.node is not None
    assert "80E01801 on card 3" in api.node["metadata"]["annotations"]["ninefold.io/isolated"]
    assert api.node["spec"]["unschedulable"] is False


def test_marking_twice_writes_once_and_another_reason_is_written() -> None:
    api = OneNode(node("n1"))
    assert mark(api)
    assert mark(api)
    assert api.writes == 1
    assert mark(api, "worse")
    assert (api.writes, len(api.taints)) == (2, 1)


def test_taking_it_off_leaves_everything_of_others_as_it_is() -> None:
    before = node("n1", taints=[TEAMS, CORDON], annotations={"kept": "yes"}, unschedulable=True)
    api = OneNode(before)
    assert mark(api)
    unmark(api)
    assert api.node == before
    unmark(api)
    assert api.writes == 2


def test_a_mark_of_another_installation_is_neither_replaced_nor_taken_off() -> None:
    api = OneNode(node("n1"))
    assert isolation_taints.write_isolation_taint(api, "n1", installation=THEIRS, reason="theirs")
    before = deepcopy(api.node)
    assert not mark(api)
    unmark(api)
    assert api.node == before


def test_a_taint_of_that_name_with_another_effect_is_somebody_elses() -> None:
    api = OneNode(
        node("n1", taints=[{"key": isolation_taints.ISOLATION_TAINT, "effect": "NoExecute"}])
    )
    assert mark(api)
    unmark(api)
    assert api.taints == [{"key": isolation_taints.ISOLATION_TAINT, "effect": "NoExecute"}]


def test_what_others_write_meanwhile_is_not_lost() -> None:
    api = OneNode(node("n1"))
    api.meanwhile = lambda: api.others_write(TEAMS)
    assert mark(api)
    assert [taint["key"] for taint in api.taints] == ["team", isolation_taints.ISOLATION_TAINT]
    api.meanwhile = lambda: api.others_write(CORDON)
    unmark(api)
    assert api.taints == [TEAMS, CORDON]


def test_a_node_that_changes_all_the_time_is_left_for_later() -> None:
    api = OneNode(node("n1"))

    def again() -> None:
        api.others_write(TEAMS)
        api.meanwhile = again

    api.meanwhile = again
    with pytest.raises(ClusterUnavailable, match="the update is retried"):
        mark(api)


def test_a_node_that_is_gone_or_goes_meanwhile_is_no_trouble() -> None:
    assert not mark(OneNode(None))
    unmark(OneNode(None))
    api = OneNode(node("n1"))

    def gone() -> None:
        api.node = None

    api.meanwhile = gone
    assert not mark(api)


def test_without_the_right_to_write_it_is_said_so() -> None:
    api = OneNode(node("n1"))

    def forbidden() -> None:
        raise ApiAccessDenied(status=403, reason="Forbidden", message="not permitted (403): nodes")

    api.meanwhile = forbidden
    with pytest.raises(ApiAccessDenied):
        mark(api)


def test_our_own_mark_keeps_nobody_of_ours_away_and_anothers_does() -> None:
    for installation, ready in ((OURS, True), (THEIRS, False)):
        api = OneNode(node("n1"))
        isolation_taints.write_isolation_taint(
            api, "n1", installation=installation, reason="a fault"
        )
        assert api.node is not None
        [seen] = observed_nodes([api.node], [], installation=OURS, plugins=())
        assert seen.ready is ready
