"""Pods of a cluster without a volume of the artifact store: an init container downloads the inputs."""

from __future__ import annotations

import json
from base64 import b64decode
from dataclasses import replace
from typing import Any

import pytest

from controlplane.adapters.clusters.kubernetes import manifests
from controlplane.adapters.clusters.kubernetes.cluster_profile import (
    ClusterProfile,
)
from controlplane.adapters.clusters.kubernetes.launch_plans import LaunchPlan
from controlplane.adapters.clusters.volcano import jobs
from controlplane.ports.artifacts import BlobDownload
from controlplane.ports.clusters import ExitCause, InvalidClusterOption, ReplicaPhase
from controlplane.ports.launches import InputArtifact
from tests.unit.adapters.kubernetes.test_launch_status import AT, pod, written
from tests.unit.adapters.kubernetes.test_launch_status import seen as observed_replica
from tests.unit.adapters.volcano.plans import OWNER, planned, trainer
from tests.unit.kubernetes_schemas import validate

DIGEST = f"sha256:{'ab' * 32}"
URL = "https://s3.example/bucket/sha256/ab?X-Amz-Signature=very-secret"


def downloading(**options: Any) -> LaunchPlan:
    plan = planned(trainer(nodes=1, cards=1), cpu_cards=2, **options)
    tree = InputArtifact(name="model", files={"weights/a.safetensors": DIGEST})
    downloads = {DIGEST: BlobDownload(url=URL, size=7)}
    return replace(plan, launch=replace(plan.launch, inputs=(tree,), downloads=downloads))


def spec_of(plan: LaunchPlan) -> dict[str, Any]:
    role = plan.launch.roles[0]
    replica = plan.replicas[role.name][0]
    manifest = manifests.pod_manifest(plan, role, replica, owner=OWNER)
    validate(manifest)
    spec: dict[str, Any] = manifest["spec"]
    return spec


@pytest.mark.parametrize(
    ("options", "source", "limit"),
    [
        ({}, {"emptyDir": {"sizeLimit": str(100 << 30)}}, 100 << 30),
        (
            {"cache": {"host_path": "/var/cache/ninefold"}, "cache_size": 7 << 30, "image": "py:3"},
            {"hostPath": {"path": "/var/cache/ninefold", "type": "Directory"}},
            7 << 30,
        ),
    ],
)
def test_only_the_downloader_writes_to_the_cache_and_the_workload_sees_its_inputs_alone(
    options: dict[str, Any], source: dict[str, Any], limit: int
) -> None:
    spec = spec_of(downloading(**options))
    assert {"name": "cache", **source} in spec["volumes"]
    (downloader,), (main,) = spec["initContainers"], spec["containers"]
    assert downloader["command"][-1] == str(limit)
    assert [one for one in main["volumeMounts"] if one["name"] in ("cache", "downloads")] == [
        {
            "name": "cache",
            "mountPath": "/ninefold/inputs/model/weights/a.safetensors",
            "subPath": f"sha256/ab/{'ab' * 31}",
            "readOnly": True,
        }
    ]
    assert {"name": "cache", "mountPath": "/ninefold/cache"} in downloader["volumeMounts"]
    assert downloader["securityContext"] == main["securityContext"]


def test_urls_are_in_a_secret_that_the_downloader_alone_mounts() -> None:
    plan = downloading()
    secret = manifests.downloads_manifest(plan, owner=OWNER)
    assert secret is not None
    validate(secret)
    listed = json.loads(b64decode(secret["data"]["inputs.json"]))
    assert listed == {"files": [{"digest": DIGEST, "size": 7, "url": URL}]}
    assert "very-secret" not in json.dumps([spec_of(plan), manifests.record_manifest(plan)])


def test_the_authorities_of_the_store_are_mounted_where_each_container_reads_them() -> None:
    plan = downloading()
    assert "s3-ca.pem" not in json.dumps(spec_of(plan))
    trusting = replace(plan, launch=plan.launch.trusting("-----BEGIN CERTIFICATE-----\n"))
    record = manifests.record_manifest(trusting)
    spec = spec_of(trusting)
    (files,) = [one for one in spec["volumes"] if one["name"] == "files"]
    assert files["configMap"]["name"] == record["metadata"]["name"]
    for container in (*spec["initContainers"], *spec["containers"]):
        (path,) = [one["value"] for one in container["env"] if one["name"] == "NINEFOLD_S3_CA_FILE"]
        (mount,) = [one for one in container["volumeMounts"] if one["mountPath"] == path]
        assert (mount["name"], mount["readOnly"]) == ("files", True)
        assert record["data"][mount["subPath"]] == "-----BEGIN CERTIFICATE-----\n"


def test_pods_that_volcano_creates_download_as_well() -> None:
    target = jobs.SchedulingTarget(queue="default")
    created = jobs.job_manifest(downloading(), target, owner=OWNER)
    template = created["spec"]["tasks"][0]["template"]
    assert template["spec"]["initContainers"] == spec_of(downloading())["initContainers"]


def test_a_shared_cache_is_filled_by_an_image_of_the_operator() -> None:
    with pytest.raises(InvalidClusterOption, match="image is empty"):
        ClusterProfile.read({"cache": {"host_path": "/var/cache/ninefold"}})


def test_a_failed_download_ends_the_replica_with_its_reason() -> None:
    waiting = {"waiting": {"reason": "PodInitializing"}}
    running = [{"name": "inputs", "state": {"running": {"startedAt": written(AT)}}}]
    seen = observed_replica(
        pod(waiting, phase="Pending", status={"initContainerStatuses": running})
    )
    assert seen.phase is ReplicaPhase.PREPARING
    assert seen.message == "the inputs are being downloaded"
    for code, cause in ((1, ExitCause.NOT_PREPARED), (28, ExitCause.DISK_FULL)):
        ended = {"exitCode": code, "message": "line\nthe artifact store answered 403\n"}
        failed = [{"name": "inputs", "state": {"terminated": ended}}]
        seen = observed_replica(
            pod(waiting, phase="Failed", status={"initContainerStatuses": failed})
        )
        assert (seen.phase, seen.cause) == (ReplicaPhase.EXITED, cause)
        assert "the artifact store answered 403" in seen.message
