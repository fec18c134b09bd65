"""Removing a cluster: refused while it is used, and nothing of it is seen afterwards."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from apps.accounts.models import AuditEntry, User
from apps.fleet import selectors
from apps.fleet.models import Card, Cluster, Node
from apps.fleet.services.card_availability import node_isolation_taint_record
from apps.jobs.models import Attempt, Job
from apps.monitoring.services.isolations import isolations_release, isolations_request
from tests import factories
from tests.functional.fleet.conftest import text


def submitted() -> Job:
    team = factories.team()
    own: dict[str, Any] = {"actor": factories.user(team=team), "team": team}
    return factories.job(
        **own,
        queue=factories.queue(),
        model=factories.model_version(**own),
        dataset=factories.dataset_version(**own),
        name="teach addresses",
    )


@pytest.fixture
def worked(cluster: Cluster) -> Attempt:
    """An attempt that runs on it."""
    return factories.running(submitted(), cluster=cluster)


def test_a_cluster_in_use_is_not_removed_and_says_by_whom(
    browser: Client, cluster: Cluster, worked: Attempt
) -> None:
    answer = browser.post(f"/fleet/clusters/{cluster.uid}/remove", follow=True)

    assert "cluster east is in use by job teach addresses; stop or move" in answer.content.decode()
    assert Cluster.objects.filter(pk=cluster.pk, removed_at=None).exists()


def test_a_cluster_with_isolated_nodes_is_not_removed(
    browser: Client, cluster: Cluster, root: User
) -> None:
    node, now = Node.objects.get(cluster=cluster), timezone.now()
    (isolation,) = isolations_request(nodes=[node.uid], reason="new fans", actor=root, at=now)
    node_isolation_taint_record(node=node.pk, tainted=True)
    standing = Cluster.objects.filter(pk=cluster.pk)
    path = f"/fleet/clusters/{cluster.uid}/remove"

    answer = browser.post(path, follow=True)
    assert (
        f"cluster east has isolated nodes: {node.name}. Return them to service first"
        in answer.content.decode()
    )
    assert browser.delete(f"/api/v1/clusters/{cluster.uid}").json()["nodes"] == [node.name]
    isolations_release(uids=[isolation.uid], reason="done", actor=root, at=now)
    browser.post(path)
    assert standing.exists(), "its mark would stay for ever"

    standing.update(error="nobody answers")
    browser.post(path)
    assert not standing.exists()


def test_a_removed_cluster_is_hidden_and_its_name_is_free(
    browser: Client, cluster: Cluster
) -> None:
    Cluster.objects.filter(pk=cluster.pk).update(kubeconfig=b"sealed")

    answer = browser.post(f"/fleet/clusters/{cluster.uid}/remove")

    assert answer["Location"] == "/fleet/clusters"
    assert browser.get(f"/fleet/clusters/{cluster.uid}").status_code == 404
    assert not Cluster.objects.exists()
    assert not Node.objects.exists()
    assert not Card.objects.exists()
    assert selectors.cards_by_chip() == {}
    assert "No clusters" in text(browser, "/fleet/clusters")
    assert AuditEntry.objects.get(action="cluster.remove").object_name == "east"
    removed = Cluster._base_manager.get(pk=cluster.pk)
    assert removed.kubeconfig is None
    assert factories.cluster(name="east", kind="fake").pk != cluster.pk


def test_past_jobs_still_show_their_cluster(browser: Client, cluster: Cluster) -> None:
    job = submitted()
    factories.failed(job, cluster=cluster)

    browser.post(f"/fleet/clusters/{cluster.uid}/remove")

    assert f"east-{cluster.uid[:8]}" in text(browser, f"/jobs/{job.uid}?tab=events")
    assert not Cluster.objects.exists()
