"""What a real API server tells of many nodes, and of what others do there, becomes nodes with cards."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from controlplane.adapters.clusters.kubernetes import KubernetesCluster
from controlplane.adapters.clusters.kubernetes.api import KubernetesApi
from controlplane.adapters.clusters.kubernetes.cluster_profile import ClusterProfile
from controlplane.adapters.clusters.kubernetes.connection_checks import (
    PERMISSIONS,
    connection_checks,
)
from controlplane.adapters.clusters.kubernetes.kubeconfig import ApiAccess, from_kubeconfig
from controlplane.adapters.clusters.kubernetes.network_topology import HYPERNODES
from controlplane.domain.common.topology import network_domains
from controlplane.ports import adapter_registry
from controlplane.ports.clusters import CheckVerdict
from tests.kubernetes.crowds import ASCEND_910A, H800, Crowd
from tests.kubernetes.fleets import decided, gang, launch_of, launched

pytestmark = pytest.mark.kubernetes

WITHIN = 120.0
PODS = "/api/v1/namespaces/default/pods"


def until(met: Callable[[], bool], what: str) -> None:
    limit = time.monotonic() + WITHIN
    while not met():
        assert time.monotonic() < limit, f"never within {WITHIN} s: {what}"
        time.sleep(0.1)


@pytest.fixture
def cluster(crowd: Crowd) -> KubernetesCluster:
    return KubernetesCluster(
        installation="01test", kubeconfig=crowd.kubeconfig, image="crowd.test/nothing:1"
    )


@contextmanager
def foreign(crowd: Crowd, name: str, *, on: str, limits: dict[str, str]) -> Iterator[None]:
    """A pod that is not ours runs there for the block."""
    container = {"name": "main", "image": "crowd.test/other:1", "resources": {"limits": limits}}
    spec = {"containers": [container], "nodeSelector": {"kubernetes.io/hostname": on}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
    account = "/api/v1/namespaces/default/serviceaccounts/default"
    until(lambda: crowd.api.found(account) is not None, "an account for pods")
    crowd.api.create(PODS, pod)
    try:
        until(lambda: phase(crowd, name) == "Running", f"{name} runs")
        yield
    finally:
        crowd.api.delete(f"{PODS}/{name}", grace=1)
        until(lambda: crowd.api.found(f"{PODS}/{name}") is None, f"{name} is gone")


def phase(crowd: Crowd, name: str) -> str:
    pod = crowd.api.found(f"{PODS}/{name}") or {"status": {}}
    return str(pod["status"].get("phase", ""))


def test_every_simulated_node_is_there_with_cards_rings_and_its_place(
    cluster: KubernetesCluster,
) -> None:
    nodes = {node.name: node for node in cluster.inventory()}
    assert len(nodes) == H800.count + ASCEND_910A.count
    assert list(nodes) == sorted(nodes)
    assert {node.ready for node in nodes.values()} == {True}
    seventeenth = nodes["h800-0017"]
    assert {card.chip for card in seventeenth.cards} == {"nvidia-h800"}
    assert [card.index for card in seventeenth.cards] == list(range(8))
    assert network_domains(seventeenth.labels or {}) == {
        "spine": "h800-spine-0",
        "leaf": "h800-leaf-2",
    }
    assert seventeenth.capacity.cpu == 96_000
    assert nodes["a910-0003"].rings == ((0, 1, 2, 3), (4, 5, 6, 7))


def test_what_others_run_is_subtracted_until_it_ends(
    crowd: Crowd, cluster: KubernetesCluster
) -> None:
    def seen() -> tuple[list[int], int]:
        (node,) = (each for each in cluster.inventory() if each.name == "h800-0003")
        return [card.index for card in node.cards if card.taken], node.capacity.cpu

    limits = {"cpu": "4", "nvidia.com/gpu": "3"}
    with foreign(crowd, "theirs", on="h800-0003", limits=limits):
        assert seen() == ([5, 6, 7], 92_000)
        crowd.end("default", "theirs", code=1)
        assert seen() == ([], 96_000)
    assert seen() == ([], 96_000)


def test_a_cordoned_or_tainted_node_takes_no_work(crowd: Crowd, cluster: KubernetesCluster) -> None:
    def unready() -> list[str]:
        return [node.name for node in cluster.inventory() if not node.ready]

    def change(number: int, **spec: Any) -> None:
        crowd.api.merge(f"/api/v1/nodes/h800-{number:04}", {"spec": spec})

    taint = {"effect": "NoSchedule", "value": "a"}
    change(1, unschedulable=True)
    change(2, taints=[{"key": "team", **taint}])
    change(3, taints=[{"key": "nvidia.com/gpu", **taint}])
    try:
        assert unready() == ["h800-0001", "h800-0002"]
    finally:
        change(1, unschedulable=None)
        for number in (2, 3):
            change(number, taints=None)
    assert unready() == []


@contextmanager
def hypernodes(crowd: Crowd) -> Iterator[str]:
    """The API has that kind for the block; the path of its objects."""
    group, plural = "topology.volcano.sh", "hypernodes"
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1alpha1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": anything},
    }
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Cluster",
            "names": {"plural": plural, "kind": "HyperNode"},
            "versions": [version],
        },
    }
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    crowd.api.create(definitions, definition)
    try:
        until(lambda: crowd.api.found(HYPERNODES) is not None, "the new kind is served")
        yield HYPERNODES
    finally:
        crowd.api.delete(f"{definitions}/{plural}.{group}")
        until(lambda: crowd.api.found(HYPERNODES) is None, "the new kind is gone")


def test_hypernodes_go_before_labels_where_volcano_has_them(
    crowd: Crowd, cluster: KubernetesCluster
) -> None:
    def domains(number: int) -> dict[str, str]:
        (node,) = (each for each in cluster.inventory() if each.name == f"h800-{number:04}")
        return dict(network_domains(node.labels or {}))

    with hypernodes(crowd) as path:
        for name, tier, kind, pattern in (
            ("s0", 1, "Node", "^h800-000[0-3]$"),
            ("s1", 2, "HyperNode", "^s0$"),
        ):
            member = {"type": kind, "selector": {"regexMatch": {"pattern": pattern}}}
            crowd.api.create(
                path,
                {
                    "apiVersion": "topology.volcano.sh/v1alpha1",
                    "kind": "HyperNode",
                    "metadata": {"name": name},
                    "spec": {"tier": tier, "members": [member]},
                },
            )
        assert domains(2) == {"spine": "s1", "leaf": "s0"}
        assert domains(9) == {"spine": "h800-spine-0", "leaf": "h800-leaf-1"}
    assert domains(2) == {"spine": "h800-spine-0", "leaf": "h800-leaf-0"}


def test_the_connection_of_an_administrator_passes_every_check(
    cluster: KubernetesCluster,
) -> None:
    found = cluster.checks()
    assert {check.verdict for check in found} == {CheckVerdict.PASSED}, found
    assert "Allocatable cards: 432, on 54 of 54 nodes" in {check.message for check in found}


def limited(crowd: Crowd, *, without: tuple[str, str]) -> KubernetesApi:
    """As an account that may do all that the checks ask about, but for one verb."""
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    rules = [
        {
            "apiGroups": [each.group],
            "resources": [each.resource],
            "verbs": [verb for verb in each.verbs.split() if (verb, each.resource) != without],
        }
        for each in (*PERMISSIONS,)
    ]
    rules.append({"apiGroups": [""], "resources": ["namespaces"], "verbs": ["create"]})
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    crowd.api.create(accounts, {"metadata": {"name": "limited"}})
    crowd.api.create(f"{rbac}/clusterroles", {"metadata": {"name": "limited"}, "rules": rules})
    crowd.api.create(
        f"{rbac}/clusterrolebindings",
        {
            "metadata": {"name": "limited"},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": "limited",
            },
            "subjects": [{"kind": "ServiceAccount", "name": "limited", "namespace": "default"}],
        },
    )
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    answer = crowd.api.create(f"{accounts}/limited/token", review)
    admin = from_kubeconfig(crowd.kubeconfig)
    return KubernetesApi(
        ApiAccess(server=admin.server, authority=admin.authority, token=answer["status"]["token"])
    )


def test_the_rules_that_the_checks_name_are_enough_and_a_missing_one_is_found(
    crowd: Crowd,
) -> None:
    api = limited(crowd, without=("delete", "pods"))
    found: tuple[Any, ...] = ()

    def judged() -> bool:
        # The authorizer hears of new bindings a moment later.
        nonlocal found
        found = connection_checks(
            api,
            installation="01test",
            profile=ClusterProfile(),
            plugins=tuple(adapter_registry.chip_plugins().values()),
        )
        return len([check for check in found if check.verdict is not CheckVerdict.PASSED]) == 1

    until(judged, "one check that does not pass")
    (failed,) = [check for check in found if check.verdict is not CheckVerdict.PASSED]
    assert (failed.name, failed.verdict) == ("permissions", CheckVerdict.FAILED)
    assert failed.message == "The account cannot delete pods"


def test_a_launch_its_events_and_its_node_are_shown(
    crowd: Crowd, cluster: KubernetesCluster
) -> None:
    nodes = cluster.inventory()
    (decision,) = decided(nodes, gang("shown", chip="nvidia-h800", replicas=1, cards=8)).placements
    launched(cluster, launch_of(decision, name="shown"))
    until(lambda: any(event.reason == "Scheduled" for event in cluster.events("shown")), "an event")
    objects = cluster.objects("shown")
    assert {each.kind for each in objects} == {"ConfigMap", "Service", "Pod"}
    assert "managedFields" not in "".join(each.text for each in objects)
    view = cluster.node(decision.replicas[0].node)
    assert view is not None
    assert [(pod.launch, pod.requests["nvidia.com/gpu"]) for pod in view.pods] == [("shown", "8")]
    assert [each.name for each in view.conditions if each.good] == ["Ready"]
    # Ours are not subtracted: the product keeps account of them itself.
    assert not any(card.taken for node in cluster.inventory() for card in node.cards)
    crowd.end("ninefold-research", "shown-trainer-0")
    until(lambda: cluster.observe(["shown"])["shown"].ended, "its end")
    cluster.remove("shown")
    assert cluster.objects("shown") == ()
