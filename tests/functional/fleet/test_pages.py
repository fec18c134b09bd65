"""Pages of clusters and nodes: what is known here, and what the cluster is asked for."""

from __future__ import annotations

from datetime import timedelta
from threading import Event

import pytest
from django.test import Client
from django.utils import timezone

from apps.fleet import selectors
from apps.fleet.models import Cluster, Node
from controlplane.adapters.fakes.clusters import FakeCluster
from controlplane.domain.common.permissions import TeamRole
from controlplane.ports.clusters import (
    CheckVerdict,
    ClusterCheck,
    ClusterEvent,
    ClusterUnavailable,
    NodeCondition,
    NodeInspection,
    NodePod,
)
from tests import factories
from tests.functional.fleet.conftest import text

VIEW = NodeInspection(
    name="east-1",
    conditions=(
        NodeCondition(name="Ready", holds=True, good=True, reason="KubeletReady", message="well"),
        NodeCondition(
            name="DiskPressure", holds=True, good=False, reason="Full", message="disk is full"
        ),
    ),
    pods=(
        NodePod(namespace="kube-system", name="proxy-1", phase="Running", launch=""),
        NodePod(
            namespace="ninefold-maps",
            name="attempt-1-main-0",
            phase="Running",
            launch="attempt-1",
            requests={"nvidia.com/gpu": "4"},
        ),
    ),
    events=(
        ClusterEvent(
            at=timezone.now(),
            warning=True,
            reason="OOMKilling",
            message="killed a process",
            about="node/east-1",
            count=3,
        ),
    ),
    labels={},
    taints=("dedicated=ml:NoSchedule",),
    facts={"kubelet": "v1.34.1"},
)


def test_the_list_shows_how_each_cluster_does(browser: Client, cluster: Cluster) -> None:
    lost = factories.cluster(name="lost", kind="fake")
    long_ago = timezone.now() - timedelta(hours=1)
    Cluster.objects.filter(pk=lost.pk).update(error="it did not answer", last_seen_at=long_ago)

    shown = text(browser, "/fleet/clusters")

    assert f'href="/fleet/clusters/{cluster.uid}"' in shown
    assert 'data-state="well"' in shown
    assert 'data-state="down"' in shown
    assert "it did not answer" in shown
    assert ">east<" not in text(browser, "/fleet/clusters?text=lost")
    assert "No matching clusters" in text(browser, "/fleet/clusters?text=nowhere")


def test_no_cluster_yet_says_how_there_will_be_one(browser: Client) -> None:
    assert "No clusters" in text(browser, "/fleet/clusters")


def test_stale_clusters_and_failed_checks_are_shown_first(
    browser: Client, cluster: Cluster, fake: FakeCluster
) -> None:
    fake.set_checks(
        ClusterCheck(name="api", verdict=CheckVerdict.PASSED, message="it answers"),
        ClusterCheck(
            name="volcano",
            verdict=CheckVerdict.LACKING,
            message="no gangs",
            remedy="install it",
            manifest="kind: ConfigMap",
        ),
    )
    browser.post(f"/fleet/clusters/{cluster.uid}/check")
    assert ">kind: ConfigMap</pre>" in text(browser, f"/fleet/clusters/{cluster.uid}")
    assert 'data-state="degraded"' in text(browser, "/fleet/clusters")

    fake.lose_contact()
    answer = browser.post(f"/fleet/clusters/{cluster.uid}/check", follow=True)

    assert "1 of 1 failed" in answer.content.decode()
    assert 'data-state="failing"' in text(browser, "/fleet/clusters")


def test_a_cluster_shows_its_capacity_and_its_nodes(browser: Client, cluster: Cluster) -> None:
    shown = text(browser, f"/fleet/clusters/{cluster.uid}")

    assert f'href="/fleet/clusters/{cluster.uid}/nodes/east-1"' in shown
    assert "4 / 4" in shown
    assert "16.0 GiB" in shown


def test_options_and_checks_are_for_operators(client: Client, cluster: Cluster) -> None:
    Cluster.objects.filter(pk=cluster.pk).update(options={"node": "secret-place"})
    team = factories.team()
    for name, sees in (("vera", False), ("olga", True)):
        client.force_login(factories.user(name, team=team, role=TeamRole.VIEWER, operator=sees))
        shown = text(client, f"/fleet/clusters/{cluster.uid}")
        assert ("secret-place" in shown) is sees
        assert ("Connection checks" in shown) is sees
        assert ("Change" in shown) is sees


def test_a_node_shows_its_cards_at_once_and_asks_the_cluster_afterwards(
    browser: Client, cluster: Cluster, fake: FakeCluster
) -> None:
    fake.set_node(VIEW)
    address = f"/fleet/clusters/{cluster.uid}/nodes/east-1"

    shown = text(browser, address)
    assert 'hx-trigger="load"' in shown
    assert "card 3" in shown
    assert "disk is full" not in shown

    fragment = text(browser, f"{address}?asked=1", HX_Request="true")
    assert "<html" not in fragment
    for expected in (
        "disk is full",
        "attempt-1-main-0",
        "nvidia.com/gpu=4",
        "proxy-1",
        "OOMKilling",
        "dedicated=ml:NoSchedule",
        "v1.34.1",
    ):
        assert expected in fragment
    assert fragment.index("disk is full") < fragment.index("well")
    assert fragment.index("attempt-1-main-0") < fragment.index("proxy-1")
    assert "disk is full" in text(browser, f"{address}?asked=1")


def test_a_node_shows_where_its_cards_are_attached(client: Client, cluster: Cluster) -> None:
    address = f"/fleet/clusters/{cluster.uid}/nodes/east-1"
    documents = {
        "0": {
            "pci_address": "0000:1b:00.0",
            "numa_node": 1,
            "nics_same_switch": ["mlx5_0", "mlx5_1"],
            "nics_same_numa": ["mlx5_7"],
        },
        "1": {
            "pci_address": "0000:b1:00.0",
            "numa_node": None,
            "nics_same_switch": [],
            "nics_same_numa": [],
        },
    }
    team = factories.team()
    client.force_login(factories.user("olga", team=team, operator=True))
    assert "Card topology" not in text(client, address)
    Node.objects.filter(cluster=cluster, name="east-1").update(locality=documents)

    shown = text(client, address)
    for expected in ("Card topology", "0000:1b:00.0", "mlx5_0, mlx5_1", "mlx5_7", "Unknown"):
        assert expected in shown
    node = Node.objects.get(cluster=cluster, name="east-1")
    assert client.get(f"/api/v1/nodes/{node.uid}").json()["locality"] == documents

    client.force_login(factories.user("vera", team=team, role=TeamRole.VIEWER))
    assert "Card topology" not in text(client, address)


def test_an_unreachable_cluster_shows_a_message_in_the_page(
    browser: Client, cluster: Cluster, fake: FakeCluster
) -> None:
    fake.lose_contact()
    shown = text(browser, f"/fleet/clusters/{cluster.uid}/nodes/east-1?asked=1")
    assert "has lost contact" in shown
    assert "card 3" in shown


def test_a_cluster_that_takes_too_long_is_not_waited_for(
    cluster: Cluster, fake: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selectors, "INSPECTION_TIMEOUT_SECONDS", 0.05)
    answering = Event()
    try:
        with pytest.raises(ClusterUnavailable, match="east did not answer within"):
            selectors.inspect_cluster(cluster, lambda _: answering.wait(10))
    finally:
        answering.set()


def test_pods_of_a_node_are_not_for_everybody(
    client: Client, cluster: Cluster, fake: FakeCluster
) -> None:
    fake.set_node(VIEW)
    client.force_login(factories.user("ada", team=factories.team()))
    shown = text(client, f"/fleet/clusters/{cluster.uid}/nodes/east-1?asked=1")
    assert "card 3" in shown
    assert "attempt-1-main-0" not in shown


def test_an_operator_cordons_a_node_and_opens_it_again(client: Client, cluster: Cluster) -> None:
    address = f"/fleet/clusters/{cluster.uid}/nodes/east-1"
    team = factories.team()
    client.force_login(factories.user("ada", team=team))
    assert client.post(f"{address}/cordon").status_code == 403

    client.force_login(factories.user("olga", team=team, role=TeamRole.VIEWER, operator=True))
    assert client.post(f"{address}/cordon")["Location"] == address
    assert Node.objects.get(name="east-1").cordoned
    assert f'action="{address}/uncordon"' in text(client, address)
    client.post(f"{address}/uncordon")
    assert not Node.objects.get(name="east-1").cordoned


def test_an_isolated_node_cannot_be_uncordoned(client: Client, cluster: Cluster) -> None:
    address = f"/fleet/clusters/{cluster.uid}/nodes/east-1"
    client.force_login(
        factories.user("olga", team=factories.team(), role=TeamRole.VIEWER, operator=True)
    )
    client.post(f"{address}/isolate", {"reason": "new fans"})
    assert f'action="{address}/uncordon"' not in text(client, address)
    shown = client.post(f"{address}/uncordon", follow=True).content.decode()
    assert "east-1 has been isolated since" in shown
    assert "Return it to service instead" in shown
    assert Node.objects.get(name="east-1").cordoned
    client.post(f"{address}/release", {"reason": "they turn"})
    assert not Node.objects.get(name="east-1").cordoned
