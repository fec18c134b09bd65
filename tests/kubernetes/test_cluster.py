"""The cluster of the tests is a real one: a pod runs, says something, and is counted."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.kubernetes import clusters, images
from tests.kubernetes.clusters import LiveCluster

pytestmark = pytest.mark.kubernetes

WITHIN = 120.0


def pod(name: str, *command: str, cards: dict[str, str]) -> dict[str, Any]:
    """One that runs this machine's programs."""
    mounts = [
        {"name": f"host-{number}", "mountPath": folder, "readOnly": True}
        for number, folder in enumerate(images.HOST_FOLDERS)
    ]
    volumes = [
        {"name": mount["name"], "hostPath": {"path": mount["mountPath"]}} for mount in mounts
    ]
    container = {
        "name": "main",
        "image": images.HOST,
        "imagePullPolicy": "Never",
        "command": list(command),
        "volumeMounts": mounts,
        "resources": {"limits": cards},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 0,
            "containers": [container],
            "volumes": volumes,
        },
    }


def created(cluster: LiveCluster, asked: dict[str, Any]) -> str:
    """The path of the pod."""
    pods = "/api/v1/namespaces/default/pods"
    limit = time.monotonic() + WITHIN
    while True:
        answer = cluster.control_plane.request("POST", pods, body=asked)
        # The account of the namespace comes a moment after the namespace.
        if answer.status_code != 403 or time.monotonic() > limit:
            break
        time.sleep(0.2)
    assert answer.status_code == 201, answer.text
    return f"{pods}/{asked['metadata']['name']}"


def in_phase(cluster: LiveCluster, path: str, *phases: str) -> dict[str, Any]:
    limit = time.monotonic() + WITHIN
    seen: dict[str, Any] = {}
    while time.monotonic() < limit:
        seen = cluster.control_plane.request("GET", path).json()
        if seen["status"].get("phase") in phases:
            return seen
        time.sleep(0.2)
    raise AssertionError(f"never {phases}: {seen['status']}")


def test_a_pod_runs_this_machines_python_and_its_log_is_read(live_cluster: LiveCluster) -> None:
    path = created(
        live_cluster, pod("speaks", "/usr/bin/python3", "-c", "print(6 * 7)", cards={"cpu": "100m"})
    )
    ended = in_phase(live_cluster, path, "Succeeded", "Failed")
    assert ended["status"]["phase"] == "Succeeded", ended["status"]
    assert live_cluster.control_plane.request("GET", f"{path}/log").text == "42\n"
    assert ended["spec"]["nodeName"] == clusters.NODE


def test_cards_are_given_by_the_real_scheduler_and_only_once(live_cluster: LiveCluster) -> None:
    sleeping = ("/bin/sleep", "60")
    first = created(live_cluster, pod("first", *sleeping, cards={"nvidia.com/gpu": "6"}))
    running = in_phase(live_cluster, first, "Running")
    assert running["status"]["podIP"].startswith("10.77.")
    second = created(live_cluster, pod("second", *sleeping, cards={"nvidia.com/gpu": "6"}))
    limit = time.monotonic() + WITHIN
    reasons: list[str] = []
    while not any("Insufficient nvidia.com/gpu" in reason for reason in reasons):
        assert time.monotonic() < limit, reasons
        conditions = live_cluster.control_plane.request("GET", second).json()["status"]
        reasons = [one.get("message", "") for one in conditions.get("conditions", ())]
        time.sleep(0.2)
    live_cluster.control_plane.request("DELETE", first)
    in_phase(live_cluster, second, "Running")
