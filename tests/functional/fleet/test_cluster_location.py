"""A cluster in use is found where it was: its work is neither lost sight of nor started a second time."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from apps.accounts.models import User
from apps.fleet import services as fleet
from apps.fleet.models import Card, Cluster, Node
from apps.fleet.services import clusters as services
from apps.jobs.models import Attempt
from apps.serving.selectors import workloads_using_cluster
from controlplane.domain.common.resources import Bytes, Millicpu, Resources
from controlplane.persistence.encryption import decrypt, encrypt
from controlplane.ports.clusters import ObservedCard, ObservedNode
from tests import factories
from tests.functional.fleet.test_removing import submitted
from tests.functional.fleet.test_rest import send

HERE, ELSEWHERE = "https://a.example.com", "https://b.example.com"


@pytest.fixture
def standing(cluster: Cluster) -> Cluster:
    cluster.kubeconfig = encrypt(f"{HERE} one".encode())
    cluster.save()
    return cluster


@pytest.fixture
def worked(standing: Cluster) -> Attempt:
    """An attempt that runs on it."""
    return factories.running(submitted(), cluster=standing)


def credential(cluster: Cluster) -> str:
    cluster.refresh_from_db()
    return decrypt(cluster.kubeconfig or b"").decode()


MOVES: list[tuple[str, dict[str, Any]]] = [
    ("kubeconfig", {"kubeconfig": f"{ELSEWHERE} one"}),
    ("namespace", {"options": {"namespace": "another"}}),
    ("in_cluster", {"options": {"in_cluster": True}}),
]


@pytest.mark.parametrize(("field", "change"), MOVES)
def test_a_cluster_in_use_is_not_pointed_elsewhere_and_says_who_is_in_the_way(
    browser: Client, standing: Cluster, worked: Attempt, field: str, change: dict[str, Any]
) -> None:
    status, problem = send(browser, "PATCH", f"clusters/{standing.uid}", change)

    assert (status, problem["code"]) == (422, "cluster-refused")
    assert problem["errors"][0]["field"] == field
    assert f"a change of {field} would point cluster east to another location" in problem["detail"]
    assert "in use by job teach addresses" in problem["detail"]
    assert credential(standing) == f"{HERE} one"
    assert standing.options == {}


def test_the_form_of_a_cluster_in_use_shows_the_refusal_at_its_options(
    browser: Client, standing: Cluster, worked: Attempt
) -> None:
    change = {"options": '{"namespace": "another"}', "binding": "node"}
    page = browser.post(f"/fleet/clusters/{standing.uid}/change", change)
    assert page.status_code == 422
    assert list(page.context["form"].errors) == ["options"]


@pytest.mark.parametrize(("field", "change"), MOVES)
def test_a_cluster_that_nobody_uses_is_pointed_elsewhere(
    browser: Client, standing: Cluster, field: str, change: dict[str, Any]
) -> None:
    assert send(browser, "PATCH", f"clusters/{standing.uid}", change)[0] == 200


def test_a_cluster_in_use_takes_a_new_credential_and_options_that_move_nothing(
    browser: Client, standing: Cluster, worked: Attempt
) -> None:
    change = {
        "kubeconfig": f"{HERE} two",
        # What holds anyway.
        "options": {"namespace": "fake", "control_url": "https://control.example.com"},
    }

    status, problem = send(browser, "PATCH", f"clusters/{standing.uid}", change)

    assert status == 200, problem
    assert credential(standing) == f"{HERE} two"


def test_a_kubeconfig_that_nobody_can_read_is_replaced_although_work_runs_but_nothing_else_moves(
    browser: Client, standing: Cluster, worked: Attempt
) -> None:
    Cluster.objects.filter(pk=standing.pk).update(kubeconfig=b"sealed by nobody")
    change: dict[str, Any] = {"kubeconfig": f"{HERE} two"}
    address = f"clusters/{standing.uid}"

    status, problem = send(browser, "PATCH", address, {**change, "options": {"namespace": "b"}})
    assert (status, problem["errors"][0]["field"]) == (422, "namespace")
    assert send(browser, "PATCH", address, change)[0] == 200


@pytest.mark.parametrize("inside", ["false", 1, None])
def test_whether_the_product_runs_inside_is_yes_or_no(browser: Client, inside: object) -> None:
    body = {"name": "west", "kind": "fake", "options": {"in_cluster": inside}}

    status, problem = send(browser, "POST", "clusters", body)

    assert (status, problem["errors"][0]["field"]) == (422, "options.in_cluster")
    assert "in_cluster must be true or false" in problem["detail"]


def test_a_cluster_that_was_removed_meanwhile_gets_no_kubeconfig_back(
    root: User, standing: Cluster
) -> None:
    seen = Cluster.objects.get(pk=standing.pk)
    services.cluster_remove(
        cluster=standing, workloads_using=workloads_using_cluster, actor=root, at=timezone.now()
    )

    with pytest.raises(services.ClusterRefused, match="cluster east has been removed"):
        services.cluster_change(
            cluster=seen,
            change=services.ClusterChange(kubeconfig=f"{HERE} two"),
            workloads_using=workloads_using_cluster,
            actor=root,
            although_unfit=False,
            at=timezone.now(),
        )

    assert Cluster._base_manager.get(pk=standing.pk).kubeconfig is None


def test_an_inventory_that_began_before_a_removal_brings_no_cards_back(
    root: User, standing: Cluster
) -> None:
    seen = Cluster.objects.get(pk=standing.pk)
    services.cluster_remove(
        cluster=standing, workloads_using=workloads_using_cluster, actor=root, at=timezone.now()
    )
    node = ObservedNode(
        name="late-1",
        cards=(ObservedCard(index=0, chip="cpu"),),
        capacity=Resources(cpu=Millicpu(1000), memory=Bytes(1 << 30)),
    )

    fleet.inventory_record(cluster=seen, nodes=[node], isolation="", at=timezone.now())

    assert not Node._base_manager.filter(name="late-1").exists()
    assert not Card.objects.exists()
