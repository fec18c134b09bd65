"""A Launch tells a cluster that schedules by itself in which queue, how urgent and how close together it is."""

from __future__ import annotations

from apps.jobs.selectors import latest_attempt
from apps.quotas.models import Claim
from controlplane.adapters.clusters.volcano.launching import PRIORITY, QUEUE, WITHIN
from tests.integration.company import Company


def test_work_that_may_go_anywhere_says_its_queue_and_its_priority(company: Company) -> None:
    _, attempt = company.launched()

    assert company.cluster.observe([attempt.launch_name])[attempt.launch_name].labels == {
        "team": "addresses",
        "kind": "attempt",
        "uid": attempt.uid,
        QUEUE: company.queue.uid,
        PRIORITY: "0",
    }


def test_work_that_stays_together_says_the_level_that_it_may_not_leave(company: Company) -> None:
    attempt = latest_attempt(company.submit())
    company.schedule()
    claim = Claim.objects.get(uid=attempt.claim_uid)
    claim.priority, claim.where = -10, {"within": "spine"}
    claim.save()
    company.turn_jobs()

    labels = company.cluster.observe([attempt.launch_name])[attempt.launch_name].labels
    assert (labels[PRIORITY], labels[WITHIN]) == ("-10", "spine")
