"""A Launch as Volcano's Job or PodGroup: one gang, one template for all replicas of a role, no node of ours."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from controlplane.adapters.clusters.kubernetes import manifests
from controlplane.adapters.clusters.kubernetes import object_names as marking
from controlplane.adapters.clusters.volcano import jobs, object_names
from controlplane.adapters.clusters.volcano.jobs import SchedulingTarget
from controlplane.ports.clusters import LaunchRefused
from controlplane.ports.launches import LaunchPlacement
from tests.golden.manifests import compare
from tests.unit.adapters.volcano import plans
from tests.unit.adapters.volcano.plans import OWNER, server, trainer
from tests.unit.adapters.volcano.schemas import assert_valid

planned = partial(plans.planned, binds=False)
TARGET = SchedulingTarget(queue="nf-01234567-q1", priority="nf-01234567-p10", tier=1)


def container(job: dict[str, Any]) -> dict[str, Any]:
    (found,) = job["spec"]["tasks"][0]["template"]["spec"]["containers"]
    return dict(found)


def variable(job: dict[str, Any], name: str) -> str:
    return str(next(one["value"] for one in container(job)["env"] if one["name"] == name))


@pytest.mark.parametrize("chip", ["ascend-910b3", "nvidia-h800"])
def test_a_gang_is_the_job_that_the_file_says_and_fits_the_schema(chip: str) -> None:
    plan = planned(trainer(), chip=chip)
    rendered = [jobs.job_manifest(plan, TARGET, owner=OWNER)]
    rendered += filter(None, [manifests.vendor_config_map_manifest(plan, owner=OWNER)])
    compare(rendered, case=f"volcano/job-{chip}")
    assert_valid(rendered)


def test_a_replica_that_serves_is_a_pod_group_with_pods_of_ours() -> None:
    plan = planned(server(), chip="nvidia-h800")
    group = jobs.pod_group(plan, TARGET, owner=OWNER)
    (role,) = plan.launch.roles
    pods = [
        jobs.member_pod_manifest(plan, role, one, TARGET, owner=OWNER)
        for one in plan.replicas["server"]
    ]
    compare([group, *pods], case="volcano/pod-group")
    assert_valid([group])
    assert group["spec"]["minResources"] == {
        "cpu": "16000m",
        "memory": str(128 << 30),
        "nvidia.com/gpu": "16",
    }
    assert [pod["metadata"]["labels"][marking.INDEX] for pod in pods] == ["0", "1"]


def test_only_what_answers_probes_is_a_pod_group() -> None:
    assert jobs.is_service_launch(planned(server()).launch)
    assert not jobs.is_service_launch(planned(trainer()).launch)


def test_a_job_starts_whole_and_is_never_started_again_by_volcano() -> None:
    spec = jobs.job_manifest(planned(trainer(nodes=3)), TARGET, owner=OWNER)["spec"]
    assert (spec["minAvailable"], spec["tasks"][0]["minAvailable"]) == (3, 3)
    assert spec["maxRetry"] == 1000
    assert {one["event"]: one["action"] for one in spec["policies"]} == {
        "PodEvicted": "AbortJob",
        "PodFailed": "TerminateJob",
    }


def test_a_replica_reads_its_place_from_what_volcano_writes() -> None:
    job = jobs.job_manifest(planned(trainer()), TARGET, owner=OWNER)
    first = container(job)["env"][0]
    assert first["name"] == jobs.INDEX_VARIABLE
    assert (
        first["valueFrom"]["fieldRef"]["fieldPath"]
        == f"metadata.annotations['{object_names.TASK_INDEX}']"
    )
    place = f"$({jobs.INDEX_VARIABLE})"
    assert container(job)["command"][2:4] == ["--rank", place]
    assert variable(job, "NODE_RANK") == place
    assert variable(job, "RANK_FILE").endswith(f"/ranks/{place}")
    # What a user wrote is text, though it looks like a variable.
    assert variable(job, "PRICE") == "$$(NOT_A_VARIABLE)"
    assert variable(job, "MASTER_ADDR") == "attempt-1-trainer-0.attempt-1.ninefold-vision.svc"


def test_pods_of_a_job_get_no_node_host_name_place_or_devices_of_ours() -> None:
    job = jobs.job_manifest(planned(trainer(), chip="ascend-910b3"), TARGET, owner=OWNER)
    template = job["spec"]["tasks"][0]["template"]
    assert "nodeAffinity" not in template["spec"].get("affinity", {})
    assert "hostname" not in template["spec"]
    assert template["spec"]["subdomain"] == "attempt-1"
    assert marking.INDEX not in template["metadata"]["labels"]
    assert marking.CARDS not in template["metadata"]["annotations"]
    assert "huawei.com/Ascend910" not in template["metadata"]["annotations"]
    assert json.loads(template["metadata"]["annotations"][marking.RECORD])["roles"] == {
        "trainer": 2
    }


def test_pods_on_the_hosts_network_are_kept_apart_because_their_ports_are_the_same() -> None:
    def affinity(nodes: int) -> object:
        job = jobs.job_manifest(
            planned(trainer(nodes=nodes), chip="ascend-910b3"), TARGET, owner=OWNER
        )
        spec = job["spec"]["tasks"][0]["template"]["spec"]
        assert spec.get("hostNetwork", False) is (nodes > 1)
        return spec.get("affinity")

    assert affinity(1) is None
    assert "podAntiAffinity" in str(affinity(2))


def test_without_a_wish_neither_priority_nor_topology_is_stated() -> None:
    spec = jobs.job_manifest(planned(trainer()), SchedulingTarget(queue="default"), owner=OWNER)[
        "spec"
    ]
    assert not spec.keys() & {"priorityClassName", "networkTopology"}


def test_replicas_of_one_role_that_ask_for_different_cards_are_refused() -> None:
    uneven = (LaunchPlacement(node="n0", cards=(0, 1)), LaunchPlacement(node="n1", cards=(0,)))
    role = replace(trainer(), placements=uneven)
    with pytest.raises(LaunchRefused, match=r"1 × nvidia\.com/gpu; 2 × nvidia\.com/gpu"):
        jobs.job_manifest(planned(role, chip="nvidia-h800"), TARGET, owner=OWNER)


def test_labels_of_the_makers_family_stand_on_the_job_and_on_its_pods() -> None:
    for chip, family in (("ascend-910a", "ascend-910"), ("ascend-310p", "ascend-310P")):
        job = jobs.job_manifest(planned(trainer(cards=1), chip=chip), TARGET, owner=OWNER)
        pods = job["spec"]["tasks"][0]["template"]["metadata"]["labels"]
        assert job["metadata"]["labels"]["ring-controller.atlas"] == family
        assert pods["ring-controller.atlas"] == family
    # Nobody says of which family it is, so nothing is said.
    job = jobs.job_manifest(planned(trainer(cards=1), chip="ascend-310"), TARGET, owner=OWNER)
    assert "ring-controller.atlas" not in job["metadata"]["labels"]
