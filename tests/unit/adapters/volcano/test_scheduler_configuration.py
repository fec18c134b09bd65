"""The scheduler's configuration that we recommend passes our own judgement, and each lack of another is said."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from controlplane.adapters.clusters.volcano import object_sync, scheduler_configuration
from controlplane.adapters.clusters.volcano.object_sync import ChangeAction
from controlplane.ports.clusters import CheckVerdict, LaunchRefused
from tests.golden.manifests import compare, compare_text
from tests.unit.adapters.kubernetes.fake_api import AnsweringApi
from tests.unit.adapters.volcano.trees import GPU, NPU, OURS

#: As Volcano's chart installs it.
DEFAULT = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang, enablePreemptable: false}, {name: conformance}]
- plugins: [{name: overcommit}, {name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
- plugins: [{name: binpack}]
"""


def recommended() -> str:
    return str(
        yaml.safe_load(scheduler_configuration.render_scheduler_configuration([NPU, GPU, NPU]))[
            "data"
        ][scheduler_configuration.KEY]
    )


def test_what_we_recommend_is_what_the_file_says_and_passes() -> None:
    compare_text(
        scheduler_configuration.render_scheduler_configuration([NPU, GPU]), case="volcano/scheduler"
    )
    assert (
        scheduler_configuration.check_scheduler_configuration(recommended()).verdict
        is CheckVerdict.PASSED
    )
    assert recommended().startswith("# actions")


def test_what_volcano_comes_with_lacks_what_our_queues_need() -> None:
    check = scheduler_configuration.check_scheduler_configuration(DEFAULT)
    assert check.verdict is CheckVerdict.LACKING
    for message in (
        "proportion is enabled",
        "capacity is disabled",
        "reclaim is disabled",
        "preempt is disabled",
        "network-topology",
    ):
        assert message in check.message
    assert check.remedy
    (offered,) = yaml.safe_load_all(check.manifest)
    assert (offered["kind"], offered["metadata"]["name"]) == (
        "ConfigMap",
        scheduler_configuration.CONFIG_MAP,
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("enableHierarchy: true", "enableHierarchy: false"), "lacks enableHierarchy"),
        (("reclaim,", "reclaim, gangreclaim,"), "both enabled"),
        (("name: gang", "name: gone"), "gang is disabled"),
    ],
)
def test_each_lack_is_named(change: tuple[str, str], message: str) -> None:
    assert (
        message
        in scheduler_configuration.check_scheduler_configuration(
            recommended().replace(*change)
        ).message
    )


def test_what_cannot_be_read_is_said() -> None:
    assert (
        scheduler_configuration.check_scheduler_configuration(None).verdict is CheckVerdict.LACKING
    )
    assert (
        scheduler_configuration.check_scheduler_configuration("a: [").verdict is CheckVerdict.FAILED
    )


def served(*versions: str) -> dict[str, Any]:
    return {"versions": [{"version": version} for version in versions]}


ANSWERS: dict[str, Any] = {
    "/apis/scheduling.volcano.sh": served("v1beta1"),
    "/apis/batch.volcano.sh": served("v1alpha1"),
    "/apis/bus.volcano.sh": served("v1alpha1"),
    "/apis/topology.volcano.sh": served("v1alpha1"),
    "/apis/apps/v1/namespaces/volcano-system/deployments/volcano-scheduler": {
        "spec": {
            "template": {
                "spec": {"containers": [{"image": "docker.io/volcanosh/vc-scheduler:v1.12.1"}]}
            }
        }
    },
    "/api/v1/namespaces/volcano-system/configmaps/volcano-scheduler-configmap": {
        "data": {scheduler_configuration.KEY: recommended()}
    },
}


def test_a_cluster_with_volcano_says_its_release_and_its_interfaces() -> None:
    interfaces, scheduler = scheduler_configuration.volcano_checks(AnsweringApi(ANSWERS))
    assert interfaces.message.startswith("Volcano v1.12.1 serves scheduling.volcano.sh/v1beta1")
    assert {interfaces.verdict, scheduler.verdict} == {CheckVerdict.PASSED}


def test_a_cluster_without_volcano_fails_with_a_remedy_and_an_old_one_lacks_the_topology() -> None:
    (check,) = scheduler_configuration.volcano_checks(AnsweringApi({}))
    assert (check.verdict, bool(check.remedy)) == (CheckVerdict.FAILED, True)
    old = {path: answer for path, answer in ANSWERS.items() if "topology" not in path}
    check, _scheduler = scheduler_configuration.volcano_checks(AnsweringApi(old))
    assert check.verdict is CheckVerdict.LACKING
    assert "topology.volcano.sh/v1alpha1" in check.message


def test_priority_classes_are_called_by_their_number_and_stay_when_we_forget_them() -> None:
    changes = object_sync.plan_priority_classes({"urgent": 100, "low": -10}, [], installation=OURS)
    compare([change.manifest for change in changes], case="volcano/priorities")
    there = [change.manifest for change in changes]
    assert object_sync.plan_priority_classes({"urgent": 100}, there, installation=OURS) == ()
    (renamed,) = object_sync.plan_priority_classes({"first": 100}, there, installation=OURS)
    assert renamed.action is ChangeAction.APPLY
    with pytest.raises(LaunchRefused, match="from -1000000000 to 1000000000"):
        object_sync.priority_class(2**30 + 1, title="mad", installation=OURS)
