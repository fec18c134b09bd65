"""Replicas tell a cluster that schedules by itself in which queue and how urgent they are."""

from __future__ import annotations

from apps.quotas.models import Claim
from controlplane.adapters.clusters.volcano.launching import PRIORITY, QUEUE
from tests.integration.company import Company
from tests.integration.serving.served import replicas_of, serving


def test_a_replica_says_its_queue_and_its_priority(company: Company) -> None:
    (replica,) = replicas_of(serving(company))

    claim = Claim.objects.get(uid=replica.claim_uid)
    assert company.cluster.observe([replica.launch_name])[replica.launch_name].labels == {
        "team": "addresses",
        "kind": "replica",
        "uid": replica.uid,
        QUEUE: company.queue.uid,
        PRIORITY: str(claim.priority),
    }
