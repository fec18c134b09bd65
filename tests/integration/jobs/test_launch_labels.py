"""A Launch tells a cluster that schedules by itself in which queue, how urgent and how close together it is."""

from __future__ import annotations

from apps.jobs.selectors import latest_attempt
from apps.quotas.models import Claim
from controlplane.adapters.clusters.volcano.cluster import PRIORITY, QUEUE, WITHIN
from tests.integration.company import Company


def test_launch_labels_of_work_without_a_level_name_queue_and_priority(company: Company) -> None:
    _, attempt = company.launched()

    assert company.cluster.observe([attempt.launch_name])[attempt.launch_name].labels == {
        "team": "addresses",
        "kind": "attempt",
        "uid": attempt.uid,
        QUEUE: company.queue.uid,
        PRIORITY: "0",
    }


def test_launch_labels_of_gangs_name_their_topology_level(company: Company) -> None:
    attempt = latest_attempt(company.submit())
    company.schedule()
    claim = Claim.objects.get(uid=attempt.claim_uid)
    claim.priority, claim.where = -10, {"within": "spine"}
    claim.save()
    company.turn_jobs()

    labels = company.cluster.observe([attempt.launch_name])[attempt.launch_name].labels
    assert (labels[PRIORITY], labels[WITHIN]) == ("-10", "spine")
