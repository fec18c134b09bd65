"""Clusters that schedule by themselves keep a copy of our queues; one that does not answer spoils no other."""

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
from apps.quotas.reconcilers import copies_keep
from apps.quotas.services.priorities import priority_classes_ensure
from apps.quotas.services.tree_files import file_edit
from apps.quotas.services.trees import tree_apply
from config.wiring import TOPICS, send
from controlplane.adapters.clusters.volcano import VolcanoCluster
from controlplane.adapters.fakes.clusters import FakeCluster
from controlplane.domain.fields import Finding
from controlplane.domain.queue_documents import Documents
from controlplane.outbox.models import OutboxMessage
from controlplane.ports import registry
from controlplane.ports.clusters import ClusterUnavailable, QueueKeeper
from tests.integration.company import Company

FILE = "queues: {lab: {cards: {cpu: {guaranteed: 2}}}}"


class KeepingCluster(FakeCluster):
    """Implements ``QueueKeeper`` too: notes what it is told, unless it is silent."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.silent = False
        self.told: list[str] = []
        self.queues: frozenset[str] = frozenset()
        self.classes: dict[str, int] = {}

    def _hear(self, what: str) -> None:
        assert not connection.in_atomic_block
        if self.silent:
            raise ClusterUnavailable("no answer within 30 s")
        self.told.append(what)

    def keep_queues(self, documents: Documents) -> tuple[Finding, ...]:
        self._hear("queues")
        self.queues = frozenset(document.name for document in documents.values())
        return (Finding(field="lab", message="queue lab states cards that nobody counts here"),)

    def keep_priorities(self, classes: Mapping[str, int]) -> None:
        self._hear("priorities")
        self.classes = dict(classes)

    def keep_topology(self) -> None:
        self._hear("topology")


@pytest.fixture
def keepers(
    committed_company: Company, monkeypatch: pytest.MonkeyPatch
) -> Mapping[str, KeepingCluster]:
    """Two clusters of the kind, ``east`` and ``west``, beside the company's own."""
    found = {name: KeepingCluster(node=f"{name}-1") for name in ("east", "west")}
    rows = {Cluster.objects.create(name=name, kind="volcano").uid: name for name in found}

    def adapter(kind: str, options: Mapping[str, Any]) -> FakeCluster:
        assert kind == "volcano", "only clusters over the network are asked"
        return found[rows[options["installation"]]]

    monkeypatch.setattr(registry, "cluster", adapter)
    priority_classes_ensure()
    return found


def troubles() -> dict[str, str]:
    rows = Cluster.objects.filter(kind="volcano")
    return dict(rows.values_list("name", "trouble"))


def test_volcano_is_a_cluster_that_keeps_our_queues() -> None:
    assert issubclass(VolcanoCluster, QueueKeeper)
    assert not issubclass(FakeCluster, QueueKeeper)


def test_a_changed_tree_is_kept_once_by_each_cluster(
    committed_company: Company,
    keepers: Mapping[str, KeepingCluster],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    chief = User.objects.create(username="chief", is_superuser=True)
    tree_apply(file_edit(FILE), actor=chief, at=committed_company.at)
    (news,) = OutboxMessage.objects.filter(topic="queues.changed")
    for task in TOPICS[news.topic]:
        monkeypatch.setattr(
            task, "apply_async", lambda *, kwargs, task=task: task.apply(kwargs=kwargs, throw=True)
        )

    send(news.topic, news.payload)

    for keeper in keepers.values():
        assert keeper.told == ["queues", "priorities", "topology"]
        assert keeper.queues == {"default", "lab"}
        assert keeper.classes == dict(PriorityClass.objects.values_list("name", "value"))
        assert keeper.classes["low"] < 0 < keeper.classes["urgent"]
    # What a cluster does not hold to is no trouble of the cluster.
    assert troubles() == {"east": "", "west": ""}
    told = [record for record in caplog.records if getattr(record, "queue", "") == "lab"]
    assert [record.__dict__["cluster"] for record in told] == ["east", "west"]


def test_a_silent_cluster_is_in_trouble_until_it_answers_and_spoils_no_other(
    committed_company: Company, keepers: Mapping[str, KeepingCluster]
) -> None:
    keepers["east"].silent = True

    assert copies_keep() == 1

    assert keepers["west"].queues == {"default"}
    stale = {"east": "its copy of our queues is out of date: no answer within 30 s", "west": ""}
    assert troubles() == stale

    rows = Cluster.objects.filter(kind="volcano")
    for row in rows:
        fleet_services.inventory_record(
            cluster=row, nodes=(), isolation="apart", at=committed_company.at
        )
    assert troubles() == stale, "its nodes answer, its queues are no newer for that"

    keepers["east"].silent = False
    assert copies_keep() == 2
    assert troubles() == {"east": "", "west": ""}


def test_other_trouble_is_neither_hidden_nor_ended(
    keepers: Mapping[str, KeepingCluster],
) -> None:
    Cluster.objects.filter(name="east").update(trouble="the certificate has expired")
    keepers["east"].silent = True
    copies_keep()
    keepers["east"].silent = False
    copies_keep()

    assert troubles()["east"] == "the certificate has expired"


def test_without_such_a_cluster_it_costs_one_query(
    company: Company, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(1):
        assert copies_keep() == 0
