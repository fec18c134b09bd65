"""Launches of replicas carry queue and priority for clusters with their own scheduler."""

from __future__ import annotations

from apps.quotas.models import Claim
from controlplane.adapters.clusters.volcano.cluster import PRIORITY, QUEUE
from tests.integration.company import Company
from tests.integration.serving.deployments import ready_deployment, replicas_of


def test_replica_launch_has_labels_of_queue_and_priority(company: Company) -> None:
    (replica,) = replicas_of(ready_deployment(company))

    claim = Claim.objects.get(uid=replica.claim_uid)
    assert company.cluster.observe([replica.launch_name])[replica.launch_name].labels == {
        "team": "addresses",
        "kind": "replica",
        "uid": replica.uid,
        QUEUE: company.queue.uid,
        PRIORITY: str(claim.priority),
    }
