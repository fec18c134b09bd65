"""What stands for a Launch on Kubernetes, as text that people look at, and the promises that it keeps."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from controlplane.adapters.clusters.kubernetes import manifests
from controlplane.adapters.clusters.kubernetes.launch_plans import LaunchPlan
from controlplane.adapters.clusters.kubernetes.manifests import pod_template
from controlplane.adapters.clusters.launch_validation import check_launch
from controlplane.domain.common.resources import Resources
from controlplane.ports import adapter_registry
from controlplane.ports.adapter_registry import all_chips
from controlplane.ports.clusters import LaunchRefused, ObservedCard, ObservedNode
from controlplane.ports.launches import EngineEnvironment, InputArtifact
from tests.golden.manifests import compare
from tests.unit.adapters.volcano.plans import OWNER, planned, server, trainer
from tests.unit.engines import serving_requests
from tests.unit.kubernetes_schemas import validate

DIGEST = f"sha256:{'ab' * 32}"
CASES: dict[str, LaunchPlan] = {
    "processors": planned(trainer(nodes=1, cards=1), cpu_cards=2),
    "nvidia-two-nodes": planned(trainer(), chip="nvidia-h800", shared_memory=1 << 30),
    "ascend-two-nodes": planned(trainer(), chip="ascend-910b3"),
    "mig-slice": planned(trainer(nodes=1, cards=1), chip="nvidia-h800-mig-1g-10gb"),
    "vnpu-slice": planned(trainer(nodes=1, cards=1), chip="ascend-310p-vir02"),
    "served": planned(server(nodes=1, cards=1), chip="nvidia-h800", reach="node_port"),
}


def objects(plan: LaunchPlan) -> list[dict[str, Any]]:
    """Everything that belongs to the Launch, in the order in which it is made."""
    rendered = [
        manifests.record_manifest(plan),
        manifests.secret_manifest(plan, owner=OWNER),
        manifests.service_manifest(plan, owner=OWNER),
    ]
    vendors = manifests.vendor_config_map_manifest(plan, owner=OWNER)
    rendered += [vendors] if vendors else []
    for role in plan.launch.roles:
        for replica in plan.replicas[role.name]:
            if role.ports and plan.profile.reach == "node_port":
                rendered.append(
                    manifests.node_port_service_manifest(
                        plan, role, index=replica.index, owner=OWNER
                    )
                )
            rendered.append(manifests.pod_manifest(plan, role, replica, owner=OWNER))
    return rendered


@pytest.mark.parametrize("case", CASES)
def test_a_launch_is_rendered_as_it_was_when_somebody_looked(case: str) -> None:
    compare(objects(CASES[case]), case=f"kubernetes/{case}")


@pytest.mark.parametrize("case", CASES)
def test_no_pod_has_a_privilege_or_a_way_to_the_clusters_api(case: str) -> None:
    for pod in (manifest for manifest in objects(CASES[case]) if manifest["kind"] == "Pod"):
        spec = pod["spec"]
        assert spec["automountServiceAccountToken"] is False
        assert spec["securityContext"]["runAsNonRoot"] is True
        (container,) = spec["containers"]
        security = container["securityContext"]
        assert (security["privileged"], security["allowPrivilegeEscalation"]) == (False, False)
        assert security["capabilities"] == {"drop": ["ALL"]}
        hosts = {volume["name"] for volume in spec["volumes"] if "hostPath" in volume}
        mounts = [mount for mount in container["volumeMounts"] if mount["name"] in hosts]
        assert all(mount["readOnly"] for mount in mounts)


def test_secrets_stand_in_no_object_but_the_secret() -> None:
    plan = CASES["processors"]
    plan = replace(plan, launch=replace(plan.launch, secrets={"TOKEN": "very-secret-value"}))
    for manifest in objects(plan):
        assert "very-secret-value" not in json.dumps(manifest)


def observed_node(name: str, *, chip: str) -> ObservedNode:
    cards = tuple(ObservedCard(index=index, chip=chip) for index in range(8))
    return ObservedNode(name=name, cards=cards, capacity=Resources())


def container_of(plan: LaunchPlan) -> dict[str, Any]:
    role = plan.launch.roles[0]
    template = pod_template(plan, role, plan.replicas[role.name][0])
    found: dict[str, Any] = template["spec"]["containers"][0]
    return found


def test_a_pod_sees_the_blobs_of_its_inputs_one_by_one_and_nothing_else_of_the_store() -> None:
    plan = planned(trainer(nodes=1, cards=1), store={"host_path": "/srv/artifacts"})
    tree = InputArtifact(name="model", files={"weights/a.safetensors": DIGEST})
    plan = replace(plan, launch=replace(plan.launch, inputs=(tree,)))
    mounts = [one for one in container_of(plan)["volumeMounts"] if one["name"] == "store"]
    assert mounts == [
        {
            "name": "store",
            "mountPath": "/ninefold/inputs/model/weights/a.safetensors",
            "subPath": f"sha256/ab/{'ab' * 31}",
            "readOnly": True,
        }
    ]


def test_pods_on_ascend_belong_to_the_group_of_the_device_files_and_others_do_not() -> None:
    groups = {}
    for case in ("ascend-two-nodes", "nvidia-two-nodes"):
        pods = (manifest for manifest in objects(CASES[case]) if manifest["kind"] == "Pod")
        groups[case] = [pod["spec"]["securityContext"].get("supplementalGroups") for pod in pods]
    assert groups == {"ascend-two-nodes": [[1000]] * 2, "nvidia-two-nodes": [None] * 2}


def test_a_name_is_found_for_the_account_that_no_image_knows() -> None:
    variables = {one["name"]: one.get("value") for one in container_of(CASES["processors"])["env"]}
    assert variables["USER"] == variables["LOGNAME"] == "ninefold-job"
    assert variables["XDG_CACHE_HOME"].startswith(variables["HOME"])


def test_a_devices_variable_counts_the_containers_own_cards() -> None:
    """The device plug-in gives the container four of eight cards: there they are 0 to 3."""
    plan = planned(trainer(nodes=1, cards=4), chip="nvidia-h800")
    card = replace(plan.replicas["trainer"][0].cards[0], variable="CUDA_VISIBLE_DEVICES")
    cards = tuple(replace(card, index=index) for index in (4, 5, 6, 7))
    replica = replace(plan.replicas["trainer"][0], cards=cards)
    plan = replace(plan, replicas={"trainer": [replica]})
    variables = {one["name"]: one.get("value") for one in container_of(plan)["env"]}
    assert variables["CUDA_VISIBLE_DEVICES"] == "0,1,2,3"


@pytest.mark.parametrize(
    ("case", "resource"),
    [("mig-slice", "nvidia.com/mig-1g.10gb"), ("vnpu-slice", "huawei.com/Ascend310P-2c")],
)
def test_a_slice_is_requested_by_the_resource_of_its_profile_and_by_no_device(
    case: str, resource: str
) -> None:
    resources = container_of(CASES[case])["resources"]
    assert resources["limits"][resource] == "1"
    requested = {name for name in resources["limits"] if "/" in name}
    assert requested == {resource}
    (pod,) = (manifest for manifest in objects(CASES[case]) if manifest["kind"] == "Pod")
    assert not any(name.startswith("huawei.com/") for name in pod["metadata"]["annotations"])


def variables_of(plan: LaunchPlan) -> dict[str, str | None]:
    return {one["name"]: one.get("value") for one in container_of(plan)["env"]}


def test_a_pod_without_cards_hides_every_vendors_cards_from_its_container() -> None:
    """An image of a vendor's may set its variable to all, which an empty pod spec would leave as it is."""
    variables = variables_of(planned(trainer(nodes=1, cards=1), cpu_cards=2))
    runtimes = {
        profile.runtime_variable: profile.no_devices
        for plugin in adapter_registry.chip_plugins().values()
        if (profile := plugin.profile()).runtime_variable
    }
    assert variables["NVIDIA_VISIBLE_DEVICES"] == "void"
    assert variables["ASCEND_VISIBLE_DEVICES"] == "void"
    assert {name: variables.get(name) for name in runtimes} == runtimes
    assert (variables["CUDA_VISIBLE_DEVICES"], variables["HIP_VISIBLE_DEVICES"]) == ("", "")


def test_a_pod_with_cards_leaves_its_vendors_variable_to_the_device_plug_in() -> None:
    """A value in the pod's spec would replace the one that the device plug-in gives."""
    variables = variables_of(planned(trainer(nodes=1, cards=4), chip="nvidia-h800"))
    assert "NVIDIA_VISIBLE_DEVICES" not in variables
    assert "CUDA_VISIBLE_DEVICES" not in variables
    assert variables["ASCEND_VISIBLE_DEVICES"] == "void"


def test_no_variable_of_a_launch_overrides_what_hides_cards() -> None:
    role = trainer(
        nodes=1,
        cards=1,
        environment={"NVIDIA_VISIBLE_DEVICES": "all", "ASCEND_VISIBLE_DEVICES": "0-7"},
    )
    variables = variables_of(planned(role, cpu_cards=2))
    assert variables["NVIDIA_VISIBLE_DEVICES"] == variables["ASCEND_VISIBLE_DEVICES"] == "void"


def test_members_of_a_gang_find_each_other_by_the_five_names() -> None:
    variables = {one["name"]: one.get("value") for one in container_of(planned(trainer()))["env"]}
    names = ("MASTER_ADDR", "MASTER_PORT", "NNODES", "NODE_RANK", "NPROC_PER_NODE")
    assert [variables[name] for name in names] == [
        "attempt-1-trainer-0.attempt-1.ninefold-vision.svc",
        "29500",
        "2",
        "0",
        "8",
    ]


@pytest.mark.parametrize("reach", ["pod", "node_port"])
def test_pods_of_a_replica_on_two_nodes_have_their_ranks_and_one_leader(reach: str) -> None:
    inputs = (InputArtifact(name="model", files={"config.json": DIGEST}),)
    leader = "replica-1-server-0.replica-1.ninefold-vision.svc"
    for engine, chip in serving_requests.ACROSS_NODES:
        launch = serving_requests.rendered(
            engine, {"model_name": "m"}, chip=chip, nodes=2, inputs=inputs
        )
        check_launch(launch, nodes=[observed_node(name, chip=chip) for name in ("n0", "n1")])
        plan = planned(*launch.roles, chip=chip, reach=reach, store={"host_path": "/srv/store"})
        plan = replace(plan, launch=replace(launch, labels=plan.launch.labels))
        pods = [manifest for manifest in objects(plan) if manifest["kind"] == "Pod"]
        assert len(pods) == 2
        for index, pod in enumerate(pods):
            validate(pod)
            (container,) = pod["spec"]["containers"]
            variables = {one["name"]: one.get("value") for one in container["env"]}
            assert (variables["NODE_RANK"], variables["NNODES"]) == (str(index), "2")
            assert variables["MASTER_ADDR"] == leader
            command = container["command"]
            assert command[command.index("--nnodes") + 1] == "2"
            assert command[command.index("--node-rank") + 1] == str(index)
            assert any(argument.startswith(leader) for argument in command)
            assert container["readinessProbe"]["httpGet"]["path"] == "/health"
            assert container["resources"]["limits"][all_chips()[chip].resource] == "4"
            # The links of NPUs are the host's.
            assert pod["spec"].get("hostNetwork", False) is chip.startswith("ascend")
        services = [manifest for manifest in objects(plan) if manifest["kind"] == "Service"]
        assert len(services) == (3 if reach == "node_port" else 1)


def with_launch(plan: LaunchPlan, **changes: Any) -> LaunchPlan:
    return replace(plan, launch=replace(plan.launch, **changes))


IMPOSSIBLE: dict[str, tuple[Callable[[], object], str]] = {
    "no image": (
        lambda: container_of(with_launch(planned(trainer(nodes=1, cards=1)), image="")),
        "set the cluster option image",
    ),
    "inputs without a store": (
        lambda: container_of(
            with_launch(
                planned(trainer(nodes=1, cards=1)), inputs=(InputArtifact(name="m", files={}),)
            )
        ),
        "set the cluster option store",
    ),
    "too many files": (
        lambda: container_of(
            with_launch(
                planned(trainer(nodes=1, cards=1), store={"claim": "artifacts"}),
                inputs=(
                    InputArtifact(name="m", files=dict.fromkeys(map(str, range(600)), DIGEST)),
                ),
            )
        ),
        "600 files; the limit of a pod is 512",
    ),
    "files too large": (
        lambda: manifests.record_manifest(
            with_launch(planned(trainer(nodes=1, cards=1)), files={"a": "x" * 500_000})
        ),
        "500000 bytes",
    ),
}


@pytest.mark.parametrize("case", IMPOSSIBLE)
def test_what_no_pod_can_carry_is_refused_with_what_would_be_right(case: str) -> None:
    render, message = IMPOSSIBLE[case]
    with pytest.raises(LaunchRefused, match=message):
        render()


def test_an_engines_environment_on_the_nodes_is_used_where_the_profile_has_it() -> None:
    plan = planned(trainer(nodes=1, cards=1), engines="/opt/engines", image="host:1")
    engine = EngineEnvironment(name="transformers-1", preinstall=(), lock="")
    container = container_of(with_launch(plan, engine=engine))
    assert container["command"][0] == "/opt/engines/transformers-1/bin/python"
    assert container["image"] == "host:1"


def test_the_silence_of_a_node_ends_no_pod() -> None:
    """Otherwise the cluster gives each pod five minutes."""
    plan = planned(trainer(nodes=1, cards=1))
    role = plan.launch.roles[0]
    spec = pod_template(plan, role, plan.replicas[role.name][0])["spec"]
    endless = {each["key"] for each in spec["tolerations"] if "tolerationSeconds" not in each}
    assert endless >= {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}


def test_a_limit_of_time_is_the_clusters_to_keep() -> None:
    plan = with_launch(planned(trainer(nodes=1, cards=1)), run_within=timedelta(minutes=5))
    role = plan.launch.roles[0]
    spec = pod_template(plan, role, plan.replicas[role.name][0])["spec"]
    assert spec["activeDeadlineSeconds"] == 300
