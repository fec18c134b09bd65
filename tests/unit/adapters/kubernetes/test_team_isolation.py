"""What separates a team's namespace: limits of its pods, Pod Security levels that hold, and a NetworkPolicy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from controlplane.adapters.clusters.kubernetes import manifests, team_isolation
from controlplane.adapters.clusters.kubernetes.cluster_profile import ClusterProfile
from controlplane.adapters.clusters.kubernetes.launch_plans import LaunchPlan
from controlplane.adapters.clusters.kubernetes.team_isolation import PodSecurityLevel
from controlplane.domain.common.resources import GIB, Bytes, Millicpu, Resources
from tests.unit import kubernetes_schemas
from tests.unit.adapters.volcano.plans import OWNER, planned, server, trainer
from tests.unit.adapters.volcano.trees import OURS

PLANS: dict[str, LaunchPlan] = {
    "processors": planned(trainer(nodes=1, cards=1), cpu_cards=2),
    "nvidia": planned(trainer(), chip="nvidia-h800"),
    "served": planned(server(nodes=1, cards=1), chip="nvidia-h800"),
    "claims": planned(trainer(nodes=1), chip="nvidia-h800", work={"claim": "work"}),
    "mounts": planned(
        trainer(nodes=1), chip="nvidia-h800", mounts=[{"host_path": "/opt", "at": "/opt"}]
    ),
    "ascend": planned(trainer(nodes=1), chip="ascend-910b3"),
    "ascend-two-nodes": planned(trainer(), chip="ascend-910b3"),
}


def pods_of(plan: LaunchPlan) -> list[dict[str, Any]]:
    return [
        manifests.pod_manifest(plan, role, replica, owner=OWNER)
        for role in plan.launch.roles
        for replica in plan.replicas[role.name]
    ]


# Rules of https://kubernetes.io/docs/concepts/security/pod-security-standards/, release 1.36.

_VOLUMES = {
    *("configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim"),
    *("projected", "secret"),
}
_CAPABILITIES = {
    *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD"),
    *("NET_BIND_SERVICE", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"),
}


def baseline_violations(spec: Mapping[str, Any]) -> Iterator[str]:
    for field in ("hostNetwork", "hostPID", "hostIPC"):
        if spec.get(field):
            yield field
    for volume in spec["volumes"]:
        if "hostPath" in volume:
            yield f"hostPath {volume['name']}"
    if (spec.get("securityContext") or {}).get("sysctls"):
        yield "sysctls"
    for container in spec["containers"] + spec.get("initContainers", []):
        yield from container_violations(container, pod=spec.get("securityContext") or {})


def container_violations(container: Mapping[str, Any], *, pod: Mapping[str, Any]) -> Iterator[str]:
    security = container.get("securityContext") or {}
    broken = {
        "privileged": security.get("privileged"),
        "capabilities": set((security.get("capabilities") or {}).get("add") or ()) - _CAPABILITIES,
        "hostPort": [each for each in container.get("ports") or () if each.get("hostPort")],
        "seccompProfile": "Unconfined"
        in [(each.get("seccompProfile") or {}).get("type") for each in (pod, security)],
        "seLinuxOptions": pod.get("seLinuxOptions") or security.get("seLinuxOptions"),
        "procMount": security.get("procMount", "Default") != "Default",
    }
    yield from (name for name, wrong in broken.items() if wrong)


def restricted_violations(spec: Mapping[str, Any]) -> Iterator[str]:
    yield from baseline_violations(spec)
    for volume in spec["volumes"]:
        if not set(volume) - {"name"} <= _VOLUMES:
            yield f"volume {volume['name']}"
    pod = spec.get("securityContext") or {}
    for container in spec["containers"] + spec.get("initContainers", []):
        security = {**pod, **(container.get("securityContext") or {})}
        if security.get("allowPrivilegeEscalation") is not False:
            yield "allowPrivilegeEscalation"
        if security.get("runAsNonRoot") is not True:
            yield "runAsNonRoot"
        if security.get("runAsUser") == 0:
            yield "runAsUser"
        if (security.get("seccompProfile") or {}).get("type") not in (
            "RuntimeDefault",
            "Localhost",
        ):
            yield "seccompProfile"
        capabilities = security.get("capabilities") or {}
        if "ALL" not in (capabilities.get("drop") or ()):
            yield "capabilities.drop"
        if not set(capabilities.get("add") or ()) <= {"NET_BIND_SERVICE"}:
            yield "capabilities.add"


@pytest.mark.parametrize("case", PLANS)
def test_a_namespace_has_the_strictest_level_that_its_pods_satisfy(case: str) -> None:
    pods = pods_of(PLANS[case])
    level = team_isolation.required_pod_security(pods)
    restricted = [wrong for pod in pods for wrong in restricted_violations(pod["spec"])]
    baseline = [wrong for pod in pods for wrong in baseline_violations(pod["spec"])]
    if level is PodSecurityLevel.RESTRICTED:
        assert restricted == []
    else:
        assert baseline, "baseline would do"
    assert (case in ("mounts", "ascend", "ascend-two-nodes")) == (
        level is PodSecurityLevel.PRIVILEGED
    )


def namespace(**labels: str) -> dict[str, Any]:
    return {"metadata": {"name": "ninefold-vision", "labels": labels}}


@pytest.mark.parametrize("case", PLANS)
def test_what_is_made_is_valid_in_the_releases_that_are_supported(case: str) -> None:
    plan = PLANS[case]
    for pod in pods_of(plan):
        kubernetes_schemas.validate(pod)
    labels = team_isolation.security_labels(team_isolation.required_pod_security(pods_of(plan)))
    kubernetes_schemas.validate(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team", "labels": labels}}
    )


def test_a_namespace_of_an_earlier_release_gets_its_level() -> None:
    change = team_isolation.pod_security_label_patch(namespace(), PodSecurityLevel.RESTRICTED)
    assert change is not None
    assert change["metadata"]["labels"][team_isolation.ENFORCE] == "restricted"


def test_a_level_of_ours_is_relaxed_and_never_tightened() -> None:
    ours = team_isolation.namespace_manifest(
        "n", installation=OURS, level=PodSecurityLevel.RESTRICTED
    )
    assert team_isolation.pod_security_label_patch(ours, PodSecurityLevel.RESTRICTED) is None
    relaxed = team_isolation.pod_security_label_patch(ours, PodSecurityLevel.PRIVILEGED)
    assert relaxed is not None
    assert relaxed["metadata"]["labels"][team_isolation.ENFORCE] == "privileged"
    open_one = team_isolation.namespace_manifest(
        "n", installation=OURS, level=PodSecurityLevel.PRIVILEGED
    )
    assert team_isolation.pod_security_label_patch(open_one, PodSecurityLevel.RESTRICTED) is None


def test_a_level_that_an_administrator_set_stays() -> None:
    theirs = namespace(**{team_isolation.ENFORCE: "baseline"})
    assert team_isolation.pod_security_label_patch(theirs, PodSecurityLevel.PRIVILEGED) is None


@pytest.mark.parametrize("case", PLANS)
def test_every_pod_is_limited_in_memory_and_in_what_it_writes(case: str) -> None:
    plan = PLANS[case]
    for pod in pods_of(plan):
        (container,) = pod["spec"]["containers"]
        limits = container["resources"]["limits"]
        assert int(limits["memory"]) > 0
        assert int(limits["ephemeral-storage"]) == plan.profile.ephemeral_storage
        folders = [volume["emptyDir"] for volume in pod["spec"]["volumes"] if "emptyDir" in volume]
        assert folders
        assert all(int(folder["sizeLimit"]) > 0 for folder in folders)


def test_a_pod_whose_spec_sets_no_memory_is_limited_by_its_cards_and_reserves_nothing() -> None:
    role = trainer(nodes=1, cards=2, limits=Resources(cpu=Millicpu(2000)))
    plan = planned(role, chip="nvidia-h800", memory_per_card=GIB)
    ((container,),) = [pod["spec"]["containers"] for pod in pods_of(plan)]
    assert container["resources"]["limits"]["memory"] == str(2 * GIB)
    assert container["resources"]["requests"]["memory"] == "0"
    limited = replace(role, limits=Resources(memory=Bytes(3 * GIB)))
    ((container,),) = [
        pod["spec"]["containers"] for pod in pods_of(planned(limited, chip="nvidia-h800"))
    ]
    assert {container["resources"][kind]["memory"] for kind in ("limits", "requests")} == {
        str(3 * GIB)
    }


def policy(*, control_plane: tuple[str, ...] = (), **options: Any) -> dict[str, Any]:
    manifest = team_isolation.network_policy(
        "ninefold-vision",
        installation=OURS,
        profile=ClusterProfile.read(options),
        control_plane=control_plane,
    )
    kubernetes_schemas.validate(manifest)
    spec: dict[str, Any] = manifest["spec"]
    return spec


def test_the_engine_port_is_open_to_the_gateway_alone() -> None:
    spec = policy(gateway_cidrs=["10.8.0.0/24"])
    inside, gateway = spec["ingress"]
    assert set(inside) == {"from"}
    assert [set(peer) for peer in inside["from"]] == [{"podSelector"}]
    assert gateway["ports"] == [{"protocol": "TCP", "port": 8000}]
    own, outside = gateway["from"]
    assert own["podSelector"]["matchLabels"]["app.kubernetes.io/component"] == "gateway"
    assert own["namespaceSelector"]["matchLabels"] == {"app.kubernetes.io/name": "ninefold"}
    assert outside == {"ipBlock": {"cidr": "10.8.0.0/24"}}


def test_pods_reach_dns_the_control_plane_each_other_and_what_the_cluster_allows() -> None:
    spec = policy(
        control_url="https://ninefold.example:8443",
        control_plane=("192.0.2.7", "2001:db8::7"),
        egress=[{"cidr": "198.51.100.0/24", "ports": [443]}, {"cidr": "fd00::/64"}],
    )
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    own, dns, web, control, first, second = spec["egress"]
    assert [set(peer) for peer in own["to"]] == [{"podSelector"}]
    assert [(port["protocol"], port["port"]) for port in dns["ports"]] == [("UDP", 53), ("TCP", 53)]
    assert dns["to"][0]["podSelector"] == {"matchLabels": {"k8s-app": "kube-dns"}}
    assert web["to"][0]["podSelector"]["matchLabels"]["app.kubernetes.io/component"] == "web"
    assert control == {
        "to": [{"ipBlock": {"cidr": "192.0.2.7/32"}}, {"ipBlock": {"cidr": "2001:db8::7/128"}}],
        "ports": [{"protocol": "TCP", "port": 8443}],
    }
    assert first == {
        "to": [{"ipBlock": {"cidr": "198.51.100.0/24"}}],
        "ports": [{"protocol": "TCP", "port": 443}],
    }
    assert second == {"to": [{"ipBlock": {"cidr": "fd00::/64"}}]}
    # No rule without peers: that would open everything.
    assert all(rule["to"] for rule in spec["egress"])
    assert all(rule["from"] for rule in spec["ingress"])


def test_a_service_of_the_cluster_is_reached_by_its_pods() -> None:
    assert team_isolation.external_host("http://web.ninefold.svc:8000") == ""
    assert team_isolation.external_host("https://ninefold.example") == "ninefold.example"
    assert team_isolation.external_host("") == ""
