"""The main job where every process is a pod: a real product, a real API server, a real kubelet."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.benchmarks.kubernetes import submitting
from tests.e2e.main_job import RECIPES, MainJob
from tests.kubernetes.clusters import LiveCluster
from tests.kubernetes.products import product_on

pytestmark = [pytest.mark.full, pytest.mark.kubernetes, pytest.mark.product, pytest.mark.engine]


def test_the_main_job_runs_in_pods_and_the_tuned_model_answers_through_the_gateway(
    live_cluster: LiveCluster,
) -> None:
    with product_on(live_cluster) as (product, client):
        quick = submitting.measure(client, live_cluster.control_plane, jobs=5)
        print(quick)
        report = MainJob(client, gateway=product.gateway, recipe=RECIPES["quick"]).run()
        print(report.table())
        kinds = _kinds_of_pods(live_cluster)
    # The benchmark's limits are for an idle machine; this is for one that does other things, too.
    assert quick.p50 < 3 * submitting.LIMITS["p50"], quick
    # Two evaluations and a fine-tuning at least, as the product has work of its own; and what was served.
    assert kinds["attempt"] >= quick.jobs + 3
    assert kinds["replica"] == 1
    assert (
        report.measurements["label_accuracy_after"] > report.measurements["label_accuracy_before"]
    )


def _kinds_of_pods(live: LiveCluster) -> Counter[str]:
    """What ran in pods of ours, by kind: pods go when they have been seen to end, events stay for a while."""
    answer = live.control_plane.request("GET", "/api/v1/events?fieldSelector=reason=Started")
    started = {event["involvedObject"]["name"] for event in answer.json()["items"]}
    return Counter(name.partition("-")[0] for name in started if "-" in name)
