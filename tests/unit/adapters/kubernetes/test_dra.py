"""Devices of a DRA driver: counted on their nodes, claimed by pods, in each version of the API."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from kubernetes.client import ApiClient

from controlplane.adapters.clusters.kubernetes import manifests
from controlplane.adapters.clusters.kubernetes.cluster_profile import (
    ClusterProfile,
)
from controlplane.adapters.clusters.kubernetes.connection_checks import connection_checks
from controlplane.adapters.clusters.kubernetes.dra import VERSIONS, DraDevices
from controlplane.adapters.clusters.kubernetes.inventory import cards_of_node, observed_nodes
from controlplane.adapters.clusters.kubernetes.launch_plans import LaunchPlan
from controlplane.adapters.clusters.kubernetes.launching import PodLauncher
from controlplane.adapters.clusters.volcano.cluster import VolcanoCluster
from controlplane.ports import adapter_registry
from controlplane.ports.clusters import CheckVerdict, InvalidClusterOption, LaunchRefused
from tests.golden.manifests import compare
from tests.unit.adapters.kubernetes.api_objects import H800, OURS, node
from tests.unit.adapters.kubernetes.fake_api import AnsweringApi, StoringApi, listing
from tests.unit.adapters.volcano.plans import OWNER, planned, trainer

GPU = "nvidia.com/gpu"
DRIVER = "gpu.nvidia.com"
CLASS = {
    "resource": GPU,
    "device_class": "gpu.nvidia.com",
    "driver": DRIVER,
    "attributes": {"type": "gpu"},
}
PROFILE = ClusterProfile.read({"device_classes": [CLASS]})
CLASSES = PROFILE.device_classes
PLUGINS = tuple(adapter_registry.chip_plugins().values())
GROUP = {"versions": [{"version": "v1"}, {"version": "v1beta1"}]}


def device(name: str, *, kind: str = "gpu", version: str = "v1", **more: Any) -> dict[str, Any]:
    said = {"attributes": {"type": {"string": kind}}, **more}
    return {"name": name, "basic": said} if version == "v1beta1" else {"name": name, **said}


def published(
    *devices: Mapping[str, Any], on: str = "n1", generation: int = 1, driver: str = DRIVER
) -> dict[str, Any]:
    pool = {"name": on, "generation": generation, "resourceSliceCount": 1}
    spec = {"driver": driver, "nodeName": on, "pool": pool, "devices": list(devices)}
    return {"metadata": {"name": f"{on}-{generation}"}, "spec": spec}


def claim(*devices: str, labels: Mapping[str, str] | None = None, on: str = "n1") -> dict[str, Any]:
    results = [
        {"request": "cards-0", "driver": DRIVER, "pool": on, "device": name} for name in devices
    ]
    return {
        "metadata": {"name": "c", "namespace": "other", "labels": dict(labels or {})},
        "status": {"allocation": {"devices": {"results": results}}},
    }


def answering(*slices: Mapping[str, Any], claims: tuple[Mapping[str, Any], ...] = ()) -> DraDevices:
    path = "/apis/resource.k8s.io"
    answers = {
        path: GROUP,
        f"{path}/v1/resourceslices": listing(*slices),
        f"{path}/v1/resourceclaims": listing(*claims),
    }
    return DraDevices(AnsweringApi(answers), CLASSES, installation=OURS)


# -- Inventory --


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_devices_of_the_class_are_cards_of_their_node(version: str) -> None:
    slices = published(
        *(device(f"gpu-{index}", version=version) for index in range(4)),
        device("gpu-0-mig-9", kind="mig", version=version),
    )
    others = published(device("nic-0", kind="gpu", version=version), driver="nic.example")
    nodes = answering(slices, others).on([node("n1", labels=H800), node("n2", labels=H800)])
    cards = [cards_of_node(each, plugins=PLUGINS, cpu_cards=0) for each in nodes]
    assert [len(each) for each in cards] == [4, 0]
    assert {(card.chip, card.resource) for card in cards[0]} == {("nvidia-h800", GPU)}


def test_of_a_pool_only_the_newest_generation_counts() -> None:
    old = published(*(device(f"gpu-{index}") for index in range(8)))
    new = published(device("gpu-0"), generation=2)
    (seen,) = answering(old, new).on([node("n1")])
    assert seen["status"]["capacity"][GPU] == "1"


def test_a_tainted_device_is_there_and_cannot_be_had() -> None:
    taint = {"key": "gpu.nvidia.com/xid", "value": "79", "effect": "NoExecute"}
    (seen,) = answering(published(device("gpu-0"), device("gpu-1", taints=[taint]))).on(
        [node("n1", labels=H800)]
    )
    (observed,) = observed_nodes([seen], (), installation=OURS, plugins=PLUGINS)
    assert [card.healthy for card in observed.cards] == [True, False]


def test_devices_that_claims_of_others_hold_are_taken() -> None:
    ours = {"ninefold.io/installation": OURS}
    devices = answering(
        published(*(device(f"gpu-{index}") for index in range(4))),
        claims=(claim("gpu-0", "gpu-3"), claim("gpu-1", labels=ours), claim("gone")),
    )
    nodes, holders = devices.inventory([node("n1", labels=H800)])
    (observed,) = observed_nodes(nodes, holders, installation=OURS, plugins=PLUGINS)
    assert sum(card.taken for card in observed.cards) == 2


def test_without_device_classes_nothing_is_asked_of_the_cluster() -> None:
    api = AnsweringApi({})
    devices = DraDevices(api, (), installation=OURS)
    nodes = [node("n1", {GPU: 8})]
    assert devices.inventory(nodes) == (nodes, ())
    assert devices.templates("ninefold-vision", "attempt-1") == ()
    assert api.requested == []


# -- Claims --


def plan_for(version: str) -> LaunchPlan:
    plan = planned(trainer(), chip="nvidia-h800", device_classes=[CLASS])
    return replace(plan, devices=version)


def objects(plan: LaunchPlan) -> list[dict[str, Any]]:
    (role,) = plan.launch.roles
    template = manifests.claim_template(plan, role, owner=OWNER)
    assert template is not None
    pods = [
        manifests.pod_manifest(plan, role, each, owner=OWNER) for each in plan.replicas[role.name]
    ]
    return [template, *pods]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_role_claims_its_devices_by_a_template_that_the_models_of_kubernetes_take(
    version: str,
) -> None:
    created = objects(plan_for(version))
    compare(created, case=f"kubernetes/dra-{version}")
    template, *pods = created
    _taken_as(template, f"V1{version[2:]}ResourceClaimTemplate")
    for pod in pods:
        _taken_as(pod, "V1Pod")
        (container,) = pod["spec"]["containers"]
        assert GPU not in container["resources"]["limits"]
        variables = {one["name"]: one.get("value") for one in container["env"]}
        # The container runtime gives none beside those that are claimed.
        assert variables["NVIDIA_VISIBLE_DEVICES"] == "void"


def _taken_as(manifest: Mapping[str, Any], model: str) -> None:
    """What the official client's model keeps of it is all of it: no field is unknown there or misplaced."""
    client = ApiClient()
    read = client.deserialize(json.dumps(manifest), model, "application/json")
    written = client.sanitize_for_serialization(read)  # type: ignore[no-untyped-call]
    assert written == manifest


def test_a_launch_makes_its_templates_before_its_pods_and_withdrawing_takes_them_away() -> None:
    group = "/apis/resource.k8s.io"
    templates = f"{group}/v1/namespaces/ninefold-vision/resourceclaimtemplates"
    path = "/api/v1/namespaces/ninefold-vision"
    slices = [published(*(device(f"gpu-{one}") for one in range(8)), on=on) for on in ("n1", "n0")]
    api = StoringApi(
        {
            group: GROUP,
            f"{group}/v1/resourceslices": listing(*slices),
            "/api/v1/namespaces": listing(),
            **{f"/api/v1/nodes/{name}": node(name, labels=H800) for name in ("n0", "n1")},
            **{
                f"{path}/{kind}": listing()
                for kind in ("pods", "secrets", "services", "configmaps")
            },
        }
    )
    profile = ClusterProfile.read({"device_classes": [CLASS]})
    launcher = PodLauncher(api, profile=profile, installation=OURS)
    launcher.launch(plan_for("v1").launch)
    created = [name for name in api.stored if name.startswith((templates, f"{path}/pods/"))]
    assert created[0] == f"{templates}/attempt-1-trainer"
    assert len(created) == 3
    claimed = api.stored[created[1]]["spec"]["resourceClaims"]
    assert claimed == [{"name": "cards", "resourceClaimTemplateName": "attempt-1-trainer"}]
    api.stored[templates] = listing(api.stored[created[0]])
    launcher.delete_launch_objects("ninefold-vision", "attempt-1", grace=0)
    assert created[0] not in api.stored


def test_work_on_cards_of_a_device_plugin_claims_nothing() -> None:
    plan = planned(trainer(), chip="ascend-910b3", device_classes=[CLASS])
    (role,) = plan.launch.roles
    assert manifests.claim_template(plan, role, owner=OWNER) is None
    pod = manifests.pod_manifest(plan, role, plan.replicas[role.name][0], owner=OWNER)
    assert "resourceClaims" not in pod["spec"]


def test_a_cluster_without_the_api_refuses_and_its_checks_say_what_to_do() -> None:
    api = AnsweringApi({"/version": {"gitVersion": "v1.28.0", "major": "1", "minor": "28"}})
    devices = DraDevices(api, CLASSES, installation=OURS)
    replicas = plan_for("v1").replicas["trainer"]
    with pytest.raises(LaunchRefused, match="remove its option device_classes"):
        devices.claim_api_version(replicas)
    api = AnsweringApi(
        {
            "/version": {"gitVersion": "v1.28.0", "major": "1", "minor": "28"},
            "/api/v1/nodes": listing(node("n1", {GPU: 8}, labels=H800)),
        }
    )
    found = connection_checks(api, installation=OURS, profile=PROFILE, plugins=PLUGINS)
    (check,) = (each for each in found if each.name == "device-classes")
    assert check.verdict is CheckVerdict.FAILED


def test_volcano_refuses_device_classes() -> None:
    with pytest.raises(InvalidClusterOption, match="not supported with Volcano"):
        VolcanoCluster(installation=OURS, kubeconfig=KUBECONFIG, device_classes=[CLASS])


KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: c
clusters: [{name: c, cluster: {server: "https://cluster.invalid"}}]
users: [{name: u, user: {token: t}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
"""
