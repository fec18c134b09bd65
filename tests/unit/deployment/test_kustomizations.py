"""What is applied to a cluster: every object is one that Kubernetes knows, and no pod may more than it needs."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from kubernetes import client

from tests.unit import kubernetes_schemas
from tests.unit.deployment.kustomizations import (
    KUBERNETES,
    OVERLAYS,
    Manifest,
    built,
    containers,
    documents,
    pod_spec,
    title,
)
from tests.unit.deployment.tools import tool

FOLDERS = [
    KUBERNETES / "access",
    KUBERNETES / "volcano",
    *(KUBERNETES / "overlays" / name for name in OVERLAYS),
]
EXAMPLES = sorted((KUBERNETES / "examples").glob("*.yaml"))
PRODUCT = ("migrate", "web", "worker", "beat", "watcher", "gateway")
#: Of these alone the processes speak to clusters.
SPEAKERS = {"web", "worker", "watcher"}


def overlay(name: str) -> list[Manifest]:
    return built(KUBERNETES / "overlays" / name)


def of_kind(manifests: list[Manifest], kind: str) -> dict[str, Manifest]:
    return {each["metadata"]["name"]: each for each in manifests if each["kind"] == kind}


def with_pods(manifests: list[Manifest]) -> list[Manifest]:
    return [each for each in manifests if pod_spec(each)]


def parsed(manifest: Manifest) -> Any:
    """By the official client's model of its kind, which refuses fields that it does not know."""
    version = manifest["apiVersion"].rpartition("/")[2]
    return getattr(client, f"{version.capitalize()}{manifest['kind']}").model_validate(manifest)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_every_object_is_what_kubernetes_knows_under_that_name(folder: Path) -> None:
    manifests = built(folder)
    for manifest in manifests:
        parsed(manifest)
    titles = [title(each) for each in manifests]
    assert len(set(titles)) == len(titles)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_every_example_is_what_kubernetes_knows_under_that_name(path: Path) -> None:
    for manifest in documents(path):
        parsed(manifest)


@pytest.mark.parametrize("folder", [*FOLDERS, KUBERNETES / "agent"], ids=lambda folder: folder.name)
def test_every_object_is_valid_in_the_releases_that_are_supported(folder: Path) -> None:
    manifests = built(folder)
    for manifest in manifests:
        kubernetes_schemas.validate(manifest)
    if folder.name == "production":
        versions = {(each["apiVersion"], each["kind"]) for each in manifests}
        assert ("policy/v1", "PodDisruptionBudget") in versions
        assert ("autoscaling/v2", "HorizontalPodAutoscaler") in versions


def test_an_object_of_an_api_that_was_removed_is_refused() -> None:
    budget = of_kind(overlay("production"), "PodDisruptionBudget").popitem()[1]
    with pytest.raises(kubernetes_validate.SchemaNotFoundError):
        kubernetes_schemas.validate({**budget, "apiVersion": "policy/v1beta1"})
    with pytest.raises(kubernetes_validate.ValidationError, match="minAvailabel"):
        kubernetes_schemas.validate({**budget, "spec": {**budget["spec"], "minAvailabel": 1}})


def test_a_field_that_kubernetes_does_not_know_is_refused() -> None:
    wrong = documents(KUBERNETES / "base" / "beat.yaml")[0]
    wrong["spec"]["template"]["spec"]["containers"][0]["livenesProbe"] = {}
    with pytest.raises(ValueError, match="livenesProbe"):
        parsed(wrong)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_kustomize_makes_the_same_of_it(folder: Path) -> None:
    kubectl = tool("kubectl")
    if kubectl is None:
        pytest.skip("kubectl, which brings kustomize, is not on PATH")
    done = subprocess.run(
        [kubectl, "kustomize", folder], check=False, capture_output=True, text=True
    )
    if "unknown command" in done.stderr or "unknown field" in done.stderr:
        pytest.skip(f"this kubectl's kustomize is too old: {done.stderr.strip()[:200]}")
    assert done.returncode == 0, done.stderr
    theirs = {title(each): each for each in yaml.safe_load_all(done.stdout)}
    assert theirs == {title(each): each for each in built(folder)}


@pytest.mark.parametrize("name", OVERLAYS)
def test_pods_keep_to_the_restricted_standard_that_their_namespace_enforces(name: str) -> None:
    for manifest in with_pods(overlay(name)):
        pod = pod_spec(manifest)
        security = pod["securityContext"]
        assert security["runAsNonRoot"] is True, title(manifest)
        assert security["runAsUser"] > 0
        assert security["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)
        kinds = {kind for volume in pod.get("volumes", ()) for kind in volume if kind != "name"}
        assert kinds <= {"emptyDir", "persistentVolumeClaim", "configMap", "secret"}, kinds
        for container in containers(manifest):
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }, (title(manifest), container["name"])


@pytest.mark.parametrize("name", OVERLAYS)
def test_every_container_says_what_it_takes_and_which_image_it_is(name: str) -> None:
    for manifest in with_pods(overlay(name)):
        for container in containers(manifest):
            assert {"cpu", "memory"} <= set(container["resources"]["requests"]), title(manifest)
            assert "memory" in container["resources"]["limits"]
            assert re.fullmatch(r"[\w./-]+:[\w.-]+", container["image"]), container["image"]
            assert not container["image"].endswith(":latest")


@pytest.mark.parametrize("name", OVERLAYS)
def test_every_volume_is_mounted_and_every_mount_has_its_volume(name: str) -> None:
    for manifest in with_pods(overlay(name)):
        claimed = manifest["spec"].get("volumeClaimTemplates", ())
        there = {volume["name"] for volume in pod_spec(manifest).get("volumes", ())}
        there |= {claim["metadata"]["name"] for claim in claimed}
        used = {
            mount["name"]
            for container in containers(manifest)
            for mount in container.get("volumeMounts", ())
        }
        assert used == there, title(manifest)


@pytest.mark.parametrize("name", OVERLAYS)
def test_only_what_speaks_to_clusters_is_given_a_token(name: str) -> None:
    for manifest in with_pods(overlay(name)):
        pod, called = pod_spec(manifest), manifest["metadata"]["name"]
        speaks = called in SPEAKERS
        assert pod["automountServiceAccountToken"] is speaks, called
        assert pod["serviceAccountName"] == ("ninefold-runner" if speaks else "ninefold"), called


@pytest.mark.parametrize("name", OVERLAYS)
def test_services_leave_no_variables_that_look_like_ours(name: str) -> None:
    # A service called ninefold-web would put NINEFOLD_WEB_PORT=tcp://… into every pod.
    for manifest in with_pods(overlay(name)):
        assert pod_spec(manifest)["enableServiceLinks"] is False, title(manifest)


def test_the_gateway_is_told_neither_the_database_nor_the_key_of_credentials() -> None:
    gateway = of_kind(overlay("production"), "Deployment")["gateway"]
    for container in containers(gateway):
        assert "envFrom" not in container
        secrets = {
            each["valueFrom"]["secretKeyRef"]["key"]
            for each in container["env"]
            if "secretKeyRef" in each.get("valueFrom", {})
        }
        assert secrets == {"NINEFOLD_GATEWAY_TOKEN", "NINEFOLD_METRICS_TOKEN"}


@pytest.mark.parametrize("name", OVERLAYS)
def test_every_name_that_an_object_refers_to_stands_in_the_overlay_or_among_the_examples(
    name: str,
) -> None:
    manifests = overlay(name)
    secrets = of_kind(documents(KUBERNETES / "examples" / "secrets.yaml"), "Secret")
    maps, claims = of_kind(manifests, "ConfigMap"), of_kind(manifests, "PersistentVolumeClaim")
    accounts = of_kind(manifests, "ServiceAccount")
    for manifest in with_pods(manifests):
        assert pod_spec(manifest)["serviceAccountName"] in accounts
        for volume in pod_spec(manifest).get("volumes", ()):
            if "persistentVolumeClaim" in volume:
                assert volume["persistentVolumeClaim"]["claimName"] in claims
        for container in containers(manifest):
            for source in container.get("envFrom", ()):
                assert source.get("configMapRef", {"name": "ninefold"})["name"] in maps
                assert source.get("secretRef", {"name": "ninefold"})["name"] in secrets
            for each in container.get("env", ()):
                wanted = each.get("valueFrom", {}).get("secretKeyRef")
                assert wanted is None or wanted["key"] in secrets[wanted["name"]]["stringData"]


@pytest.mark.parametrize("name", OVERLAYS)
def test_services_policies_budgets_and_scalers_find_their_pods(name: str) -> None:
    manifests = overlay(name)
    pods = [each["spec"]["template"]["metadata"]["labels"] for each in with_pods(manifests)]
    for kind in ("Service", "NetworkPolicy", "PodDisruptionBudget"):
        for called, manifest in of_kind(manifests, kind).items():
            spec = manifest["spec"]
            wanted = spec.get("selector") or spec.get("podSelector") or {}
            wanted = wanted.get("matchLabels", wanted)
            assert any(wanted.items() <= labels.items() for labels in pods), (kind, called)
    for manifest in of_kind(manifests, "HorizontalPodAutoscaler").values():
        aim = of_kind(manifests, "Deployment")[manifest["spec"]["scaleTargetRef"]["name"]]
        assert "replicas" not in aim["spec"], "the autoscaler and the manifest would disagree"


def test_all_pods_are_reached_by_those_alone_whom_a_policy_names() -> None:
    policies = of_kind(overlay("small"), "NetworkPolicy")
    assert policies["nobody"]["spec"] == {"podSelector": {}, "policyTypes": ["Ingress"]}
    for called in ("postgres", "redis"):
        [rule] = policies[called]["spec"]["ingress"]
        [peer] = rule["from"]
        [expression] = peer["podSelector"]["matchExpressions"]
        assert "gateway" not in expression["values"]


@pytest.mark.parametrize("name", OVERLAYS)
def test_every_process_of_the_product_runs_once_and_waits_for_the_database_to_be_migrated(
    name: str,
) -> None:
    workloads = {each["metadata"]["name"]: each for each in with_pods(overlay(name))}
    assert set(PRODUCT) <= set(workloads)
    assert workloads["beat"]["spec"]["replicas"] == 1
    assert workloads["beat"]["spec"]["strategy"] == {"type": "Recreate"}
    for called in set(PRODUCT) - {"gateway", "migrate"}:
        [init_container] = pod_spec(workloads[called])["initContainers"]
        assert init_container["command"] == ["python", "manage.py", "migrate", "--check"], called
