"""Sync of queues to clusters with their own scheduler; an unreachable one does not affect others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from django.db import connection
from pytest_django import DjangoAssertNumQueries

from apps.accounts.models import User
from apps.fleet import services as fleet_services
from apps.fleet.models import Cluster
from apps.quotas.models import PriorityClass
from apps.quotas.reconcilers import cluster_queues_sync
from apps.quotas.services.priority_classes import priority_classes_ensure
from apps.quotas.services.queue_tree_files import tree_edit_from_yaml
from apps.quotas.services.queue_trees import queue_tree_apply
from config.tasks import TOPICS, queue_subscribed_tasks
from controlplane.adapters.clusters.volcano import VolcanoCluster
from controlplane.adapters.fakes.clusters import FakeCluster
from controlplane.domain.common.spec_fields import FieldFinding
from controlplane.domain.quotas.queue_documents import Documents
from controlplane.outbox.models import OutboxMessage
from controlplane.ports import adapter_registry
from controlplane.ports.clusters import ClusterUnavailable, QueueSyncingCluster
from tests.integration.company import Company

FILE = "queues: {lab: {cards: {cpu: {guaranteed: 2}}}}"


class SyncingCluster(FakeCluster):
    """Implements ``QueueSyncingCluster`` too: records calls, unless it is unreachable."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.unreachable = False
        self.synced: list[str] = []
        self.queues: frozenset[str] = frozenset()
        self.classes: dict[str, int] = {}

    def _record(self, what: str) -> None:
        assert not connection.in_atomic_block
        if self.unreachable:
            raise ClusterUnavailable("no answer within 30 s")
        self.synced.append(what)

    def sync_queues(self, documents: Documents) -> tuple[FieldFinding, ...]:
        self._record("queues")
        self.queues = frozenset(document.name for document in documents.values())
        return (
            FieldFinding(field="lab", message="queue lab states cards that nobody counts here"),
        )

    def sync_priority_classes(self, classes: Mapping[str, int]) -> None:
        self._record("priorities")
        self.classes = dict(classes)

    def sync_topology(self) -> None:
        self._record("topology")


@pytest.fixture
def syncing_clusters(
    committed_company: Company, monkeypatch: pytest.MonkeyPatch
) -> Mapping[str, SyncingCluster]:
    """Two clusters of the kind, ``east`` and ``west``, beside the company's own."""
    found = {name: SyncingCluster(node=f"{name}-1") for name in ("east", "west")}
    rows = {Cluster.objects.create(name=name, kind="volcano").uid: name for name in found}

    def adapter(kind: str, options: Mapping[str, Any]) -> FakeCluster:
        assert kind == "volcano", "only clusters over the network are asked"
        return found[rows[options["installation"]]]

    monkeypatch.setattr(adapter_registry, "create_cluster_adapter", adapter)
    priority_classes_ensure()
    return found


def degraded() -> dict[str, str]:
    rows = Cluster.objects.filter(kind="volcano")
    return dict(rows.values_list("name", "error"))


def test_volcano_supports_queue_sync() -> None:
    assert issubclass(VolcanoCluster, QueueSyncingCluster)
    assert not issubclass(FakeCluster, QueueSyncingCluster)


def test_a_changed_tree_is_synced_once_to_each_cluster(
    committed_company: Company,
    syncing_clusters: Mapping[str, SyncingCluster],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    chief = User.objects.create(username="chief", is_superuser=True)
    queue_tree_apply(tree_edit_from_yaml(FILE), actor=chief, at=committed_company.at)
    (message,) = OutboxMessage.objects.filter(topic="queues.changed")
    for task in TOPICS[message.topic]:
        monkeypatch.setattr(
            task,
            "apply_async",
            lambda *, kwargs, task=task, **_: task.apply(kwargs=kwargs, throw=True),
        )

    queue_subscribed_tasks(message.topic, message.payload)

    for keeper in syncing_clusters.values():
        assert keeper.synced == ["queues", "priorities", "topology"]
        assert keeper.queues == {"default", "lab"}
        assert keeper.classes == dict(PriorityClass.objects.values_list("name", "value"))
        assert keeper.classes["low"] < 0 < keeper.classes["urgent"]
    # What a cluster does not hold to is no trouble of the cluster.
    assert degraded() == {"east": "", "west": ""}
    synced = [record for record in caplog.records if getattr(record, "queue", "") == "lab"]
    assert [record.__dict__["cluster"] for record in synced] == ["east", "west"]


def test_an_unreachable_cluster_is_degraded_until_it_recovers_and_does_not_affect_others(
    committed_company: Company, syncing_clusters: Mapping[str, SyncingCluster]
) -> None:
    syncing_clusters["east"].unreachable = True

    assert cluster_queues_sync() == 1

    assert syncing_clusters["west"].queues == {"default"}
    stale = {"east": "the queues on the cluster are out of date: no answer within 30 s", "west": ""}
    assert degraded() == stale

    rows = Cluster.objects.filter(kind="volcano")
    for row in rows:
        fleet_services.inventory_record(
            cluster=row, nodes=(), isolation="apart", at=committed_company.at
        )
    assert degraded() == stale, "its nodes answer, its queues are no newer for that"

    syncing_clusters["east"].unreachable = False
    assert cluster_queues_sync() == 2
    assert degraded() == {"east": "", "west": ""}


def test_other_errors_of_a_cluster_are_preserved(
    syncing_clusters: Mapping[str, SyncingCluster],
) -> None:
    Cluster.objects.filter(name="east").update(error="the certificate has expired")
    syncing_clusters["east"].unreachable = True
    cluster_queues_sync()
    syncing_clusters["east"].unreachable = False
    cluster_queues_sync()

    assert degraded()["east"] == "the certificate has expired"


def test_without_remote_clusters_a_sync_takes_one_query(
    company: Company, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(1):
        assert cluster_queues_sync() == 0
