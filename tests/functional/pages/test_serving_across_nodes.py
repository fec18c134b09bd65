"""Replicas that span nodes, by REST and on the page: choice of cards, gang start, endpoint, restart and logs.

The cluster is simulated, and its clock is held: not run on hardware.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from apps.fleet.models import Node
from apps.fleet.reconcilers import inventories_sync
from apps.quotas.models import Allocation, Claim
from apps.quotas.reconcilers import cycle_run
from apps.serving import reconcilers, selectors
from apps.serving.models import Deployment, Replica
from apps.serving.services import gateways
from config import simulated_clusters
from config.demo.simulated_day import time_frozen_at
from controlplane.adapters.clusters.simulated import SimulatedCluster
from controlplane.domain.common.topology import network_domains
from controlplane.domain.quotas.claims import GangShape
from controlplane.domain.scheduling.plans import SchedulingPolicy
from tests.functional.api.callers import caller, wrong_fields
from tests.functional.pages.test_serving_deployments import LLAMA_405B, add_node, give_config
from tests.functional.sample_rows import FilledCompany
from tests.integration.simulated_cluster.conftest import Clock

#: Nodes of eight cards each.
FLEET = {
    "groups": [
        {"name": "h800", "chip": "nvidia-h800", "nodes": 4, "levels": {"leaf": 2}},
        {"name": "npu", "chip": "ascend-910b3", "nodes": 1, "levels": {"leaf": 1}},
    ]
}


@pytest.fixture
def cluster(filled: FilledCompany, tmp_path: Path, settings: Settings) -> SimulatedCluster:
    settings.NINEFOLD_HOME = tmp_path
    simulated_clusters.ensure_simulated_cluster("paper", fleet=FLEET)
    simulated = simulated_clusters.cluster_named("paper")
    simulated.hold(Clock().at)
    inventories_sync(at=Clock().at)
    give_config(filled.tuned, LLAMA_405B, parameters=405_853_388_800)
    return simulated


@pytest.fixture
def turn(cluster: SimulatedCluster) -> Callable[..., datetime]:
    """Moves time on and reconciles; returns the new time."""

    def go_on(**distance: float) -> datetime:
        at = cluster.now() + timedelta(**distance)
        cluster.hold(at)
        with time_frozen_at(at):
            for _ in range(2):
                reconcilers.deployments_reconcile(at=at)
                cycle_run(policy=SchedulingPolicy(), at=at)
                reconcilers.replicas_reconcile(at=at)
            reconcilers.deployments_reconcile(at=at)
        return at

    return go_on


def deploy(filled: FilledCompany, *, status: int = 201, **given: Any) -> Any:
    body = {"name": "large", "team": filled.team.slug, "model_version": filled.tuned.uid, **given}
    response = caller(filled.user).post("/api/v1/deployments", body)
    assert response.status_code == status, response.content
    return response if status == 422 else response.json()


def replica_of(deployment: dict[str, Any]) -> Replica:
    return Replica.objects.get(backend__revision__deployment__uid=deployment["uid"])


def endpoints(name: str, *, at: datetime) -> list[str]:
    gateways.gateway_snapshot_publish(at=at)
    latest = selectors.latest_gateway_snapshot()
    assert latest is not None
    routes = json.loads(gateways.gateway_snapshot_body(latest))["routes"]
    (route,) = [route for route in routes if route["name"] == name]
    return [endpoint["url"] for backend in route["backends"] for endpoint in backend["endpoints"]]


def test_a_model_that_no_node_holds_is_served_by_two(
    browser: Client,
    filled: FilledCompany,
    cluster: SimulatedCluster,
    turn: Callable[..., datetime],
) -> None:
    created = deploy(filled)
    (revision,) = created["revisions"]
    assert (revision["chips"], revision["cards"], revision["nodes"]) == (["nvidia-h800"], 16, 2)

    turn()
    replica = replica_of(created)
    claim = Claim.objects.get(uid=replica.claim_uid)
    (role,) = GangShape.from_json(claim.shape).roles
    assert (role.replicas, role.cards) == (2, 8)
    nodes = selectors.replica_nodes(replica)
    rows = Node.objects.filter(name__in=nodes)
    assert len(rows) == 2
    assert len({network_domains(node.labels)["leaf"] for node in rows}) == 1
    launched = cluster.launch_snapshot(replica.launch_name)
    assert launched is not None
    assert [each.node for each in launched.record.locations] == list(nodes)
    assert replica.state == "starting"

    at = turn(minutes=40)
    replica.refresh_from_db()
    assert replica.state == "ready", replica.message
    first = cluster.endpoint(replica.launch_name, role="server", index=0, port="http")
    assert first is not None
    assert endpoints("large", at=at) == [first.url] == [replica.url]

    page = browser.get(reverse("deployment", args=[created["uid"]])).text
    assert "2 nodes × 8 cards of nvidia-h800" in page
    assert all(f"{node} · 0–7" in page for node in nodes)
    revisions = browser.get(reverse("deployment", args=[created["uid"]]), {"tab": "revisions"}).text
    assert "2 nodes × 8 cards of nvidia-h800" in revisions
    log = browser.get(
        reverse("deployment", args=[created["uid"]]), {"tab": "log", "process": "1"}
    ).text
    assert f'<option value="1" selected>1 · {nodes[1]}</option>' in log
    text = caller(filled.user).get(f"/api/v1/replicas/{replica.uid}/log?process=1").json()["text"]
    assert f"server 2 of 2 on {nodes[1]}" in text
    # The names of the nodes outlive their cluster.
    rows.update(removed_at=at)
    assert selectors.replica_nodes(replica) == nodes


def test_a_replica_restarts_with_all_its_processes_and_keeps_its_cards(
    filled: FilledCompany, cluster: SimulatedCluster, turn: Callable[..., datetime]
) -> None:
    created = deploy(filled, chips=["nvidia-h800"], cards=16)
    turn()
    turn(minutes=40)
    replica = replica_of(created)
    assert replica.state == "ready", replica.message
    nodes = selectors.replica_nodes(replica)

    cluster.faults.kill_card(nodes[1], 3, message="ECC")
    at = turn(minutes=1)
    replica.refresh_from_db()
    assert (replica.state, replica.url) == ("backoff", "")
    assert replica.message.startswith(f"process 1: card 3 of {nodes[1]} failed: ECC; restart in")
    assert f"card 3 of {nodes[1]} failed: ECC" in replica.log_tail
    assert "server 2 of 2" in replica.log_tail
    assert endpoints("large", at=at) == []
    assert Allocation.objects.filter(claim__uid=replica.claim_uid, released_at=None).count() == 16

    cluster.faults.recover(nodes[1])
    turn(minutes=1)
    turn(minutes=40)
    replica.refresh_from_db()
    assert (replica.state, replica.generation) == ("ready", 2), replica.message
    assert selectors.replica_nodes(replica) == nodes
    assert cluster.names() == {replica.launch_name}

    caller(filled.user).post(f"/api/v1/deployments/{created['uid']}/stop")
    turn(minutes=1)
    turn(minutes=15)
    assert cluster.names() == frozenset()
    assert not Allocation.objects.filter(claim__uid=replica.claim_uid, released_at=None).exists()


def test_a_replica_waits_until_all_its_nodes_are_free(
    filled: FilledCompany, turn: Callable[..., datetime]
) -> None:
    names = ("one-node", "first", "second")
    deploy(filled, name=names[0], chips=["nvidia-h800"], cards=8)
    turn()
    for name in names[1:]:
        deploy(filled, name=name)
    turn()
    replicas = Replica.objects.filter(backend__revision__deployment__name__in=names)
    pending = replicas.get(state="pending")
    started = [selectors.replica_nodes(one) for one in replicas.filter(state="starting")]
    assert sorted(map(len, started)) == [1, 2]
    assert len({node for nodes in started for node in nodes}) == 3
    assert "needs 2 × 8 cards of nvidia-h800" in pending.message
    assert not Allocation.objects.filter(claim__uid=pending.claim_uid).exists()


@pytest.mark.usefixtures("cluster")
def test_what_cannot_span_nodes_is_refused_with_the_reason(filled: FilledCompany) -> None:
    gpus: dict[str, Any] = {"chips": ["nvidia-h800"], "cards": 16}
    npus: dict[str, Any] = {"chips": ["ascend-910b3"], "cards": 16}
    for given, field, message in (
        ({**gpus, "cards": 12}, "cards", "must be a multiple of 8, the cards of a node, got 12"),
        ({**npus, "engine": "mindie"}, "engine", "must run on one node, got 2: MindIE requires"),
        ({**npus, "engine": "mindie"}, "engine", "use sglang, vllm_ascend"),
        ({**gpus, "engine": "xllm"}, "engine", "got 2: xLLM requires a rank table"),
        (
            {**gpus, "engine": "sglang", "spec": {"parallel": {"data": 2}}},
            "parallel.data",
            "SGLang requires the 2 copies of parallel.data on one node, got 2 nodes",
        ),
        ({**gpus, "spec": {"parallel": {"tensor": 32}}}, "parallel", "is 32; it must equal"),
        ({**gpus, "engine": "sglang", "spec": {"parallel": 5}}, "parallel", "5"),
        ({**gpus, "spec": {"parallel": {"data": [2]}}}, "parallel.data", "[2]"),
        ({"spec": {"parallel": {"data": [2]}}}, "parallel.data", "[2]"),
    ):
        refused = wrong_fields(deploy(filled, status=422, **given), 422, "spec-refused")
        assert message in refused[field], refused
    # One node of the chip holds less than the model needs, and the fleet has one.
    detail = deploy(filled, status=422, chips=["ascend-910b3"]).json()["detail"]
    assert "on 8 × Ascend 910B3, where" in detail
    # Tensor parallelism across nodes is slow: it is possible, but has to be set.
    spread = deploy(filled, **gpus, name="spread", spec={"parallel": {"tensor": 16}})
    assert spread["revisions"][0]["nodes"] == 2
    # An engine that cannot span nodes is not chosen.
    (revision,) = deploy(filled, **npus)["revisions"]
    assert revision["engine"] in ("sglang", "vllm_ascend")


def test_a_number_of_cards_that_no_engine_spans_is_refused(filled: FilledCompany) -> None:
    give_config(filled.tuned, LLAMA_405B, parameters=405_853_388_800)
    add_node("east", "ascend-910a")
    refused = wrong_fields(deploy(filled, status=422, cards=16), 422, "spec-refused")
    assert "does not serve on ascend-910a" in refused["engine"]


def test_the_form_shows_the_nodes_of_a_replica(browser: Client, filled: FilledCompany) -> None:
    give_config(filled.tuned, LLAMA_405B, parameters=405_853_388_800)
    form = {
        "team": filled.team.uid,
        "model_version": filled.tuned.uid,
        "name": "large",
        "replicas": "1",
        "chip": "nvidia-h800",
        "cards": "16",
        "queue": filled.queue.uid,
    }
    shown = browser.post("/deployments/check", form).text
    assert "Each replica spans 2 nodes × 8 cards, which are allocated together." in shown
    assert "Fits on 16 × NVIDIA H800" in shown
    assert (
        "must be a multiple of 8" in browser.post("/deployments/check", form | {"cards": "12"}).text
    )
    created = browser.post("/deployments/new", form | {"engine": "vllm"})
    assert created.status_code == 302, created.text
    uid = created["Location"].rstrip("/").rpartition("/")[2]
    assert Deployment.objects.get(uid=uid).revisions.get().cards == 16
