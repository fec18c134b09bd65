"""What docker/kubernetes holds is what a real API server takes, field by field."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest
from kubernetes.client import V1Deployment

from tests.contract.waiting import until
from tests.kubernetes import images
from tests.kubernetes.clusters import LiveCluster
from tests.kubernetes.control_planes import ControlPlane
from tests.unit.deployment.kustomizations import (
    KUBERNETES,
    OVERLAYS,
    Manifest,
    built,
    containers,
    documents,
    title,
)

pytestmark = pytest.mark.kubernetes

#: Groups that the API server of the tests, 1.20, does not have in these versions; models of the client parse them.
NEWER: Final = frozenset({"policy/v1", "autoscaling/v2"})
#: Fields that 1.20 knows and takes away, as what reads them is not switched on.
SWITCHED_OFF: Final = frozenset({"spec.ttlSecondsAfterFinished"})
_PLURALS: Final = {"NetworkPolicy": "networkpolicies", "Ingress": "ingresses"}
_ACROSS: Final = frozenset({"Namespace", "ClusterRole", "ClusterRoleBinding"})
WITHIN = 120.0


@pytest.fixture(scope="module")
def server(live_cluster: LiveCluster) -> Iterator[ControlPlane]:
    """With the namespaces that the manifests speak of."""
    plane = live_cluster.control_plane
    for name in ("ninefold", "volcano-system"):
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        plane.request("POST", "/api/v1/namespaces", body=namespace).raise_for_status()
    yield plane
    for name in ("ninefold", "volcano-system"):
        path = f"/api/v1/namespaces/{name}"
        plane.request("DELETE", path).raise_for_status()
        until(_gone(plane, path), within=WITHIN, what=f"{name} is gone")


def _gone(plane: ControlPlane, path: str) -> Callable[[], bool]:
    return lambda: plane.request("GET", path).status_code == 404


def collection(manifest: Manifest) -> str:
    kind, version = manifest["kind"], manifest["apiVersion"]
    group = f"/apis/{version}" if "/" in version else f"/api/{version}"
    space = "" if kind in _ACROSS else f"/namespaces/{manifest['metadata']['namespace']}"
    return f"{group}{space}/{_PLURALS.get(kind, kind.lower() + 's')}"


def lost(sent: Any, stored: Any, *, at: str = "") -> Iterator[str]:
    """Paths of what was sent and does not stand in the answer: the server knows no such field."""
    if isinstance(sent, dict) and isinstance(stored, dict):
        for name, value in sent.items():
            path = f"{at}.{name}" if at else name
            if name in stored:
                yield from lost(value, stored[name], at=path)
            elif value not in ({}, [], ""):
                yield path
    elif isinstance(sent, list) and isinstance(stored, list) and len(sent) == len(stored):
        for number, (one, other) in enumerate(zip(sent, stored, strict=True)):
            yield from lost(one, other, at=f"{at}[{number}]")
    elif sent != stored:
        yield f"{at}: {sent!r} became {stored!r}"


def every_manifest() -> list[Manifest]:
    """Each object once; of those that overlays change, each form."""
    found: dict[str, Manifest] = {}
    folders = ["access", "volcano", *(f"overlays/{name}" for name in OVERLAYS)]
    for folder in folders:
        for each in built(KUBERNETES / folder):
            found.setdefault(f"{title(each)} {each}", each)
    for path in sorted((KUBERNETES / "examples").glob("*.yaml")):
        for each in documents(path):
            found[f"{title(each)} {path.name}"] = each
    return list(found.values())


def test_every_object_that_the_server_is_old_enough_for_is_taken_whole(
    server: ControlPlane,
) -> None:
    refused, checked = [], 0
    for manifest in every_manifest():
        if manifest["apiVersion"] in NEWER or manifest["kind"] == "Namespace":
            continue
        answer = server.request("POST", f"{collection(manifest)}?dryRun=All", body=manifest)
        if answer.status_code != 201:
            refused.append(f"{title(manifest)}: {answer.text}")
            continue
        # What stands in stringData is kept under another name.
        sent = {name: value for name, value in manifest.items() if name != "stringData"}
        missing = set(lost(sent, answer.json())) - SWITCHED_OFF
        refused += [f"{title(manifest)}: {each}" for each in sorted(missing)]
        checked += 1
    assert refused == []
    assert checked > 40


def test_a_field_that_the_server_does_not_know_is_noticed(server: ControlPlane) -> None:
    manifest = documents(KUBERNETES / "base" / "beat.yaml")[0]
    V1Deployment.model_validate(manifest)
    next(containers(manifest))["livenesProbe"] = {"exec": {"command": ["true"]}}
    answer = server.request("POST", f"{collection(manifest)}?dryRun=All", body=manifest)
    assert list(lost(manifest, answer.json())) == [
        "spec.template.spec.initContainers[0].livenesProbe"
    ]


def test_the_kubelet_adds_the_pods_address_to_the_hosts_of_the_configuration(
    server: ControlPlane,
) -> None:
    """The web's environment, in a pod that prints what it was told."""
    web = documents(KUBERNETES / "base" / "web.yaml")[0]
    [container] = [each for each in containers(web) if each["name"] == "web"]
    settings = documents(KUBERNETES / "base" / "configuration.yaml")[0]
    [_, secrets] = container["envFrom"]
    assert "secretRef" in secrets
    space = "/api/v1/namespaces/ninefold"
    server.request("POST", f"{space}/configmaps", body=settings).raise_for_status()
    # The account of the namespace comes a moment after the namespace.
    until(
        lambda: server.request("POST", f"{space}/pods", body=_printing(container)).ok,
        within=WITHIN,
        what="the pod is taken",
    )
    path = f"{space}/pods/prints"
    address = until(
        lambda: _status(server, path, phase="Succeeded").get("podIP"), within=WITHIN, what="it ends"
    )
    said = server.request("GET", f"{path}/log").text.strip()
    assert said == f"{settings['data']['NINEFOLD_ALLOWED_HOSTS']},{address}"
    server.request("DELETE", path)


def _printing(container: Manifest) -> Manifest:
    mounts = [
        {"name": f"host-{number}", "mountPath": folder, "readOnly": True}
        for number, folder in enumerate(images.HOST_FOLDERS)
    ]
    volumes = [{"name": each["name"], "hostPath": {"path": each["mountPath"]}} for each in mounts]
    prints = {
        "name": "main",
        "image": images.HOST,
        "imagePullPolicy": "Never",
        "command": ["/usr/bin/printenv", "NINEFOLD_ALLOWED_HOSTS"],
        "envFrom": container["envFrom"][:1],
        "env": container["env"],
        "volumeMounts": mounts,
    }
    spec = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "containers": [prints],
        "volumes": volumes,
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "prints"}, "spec": spec}


def _status(server: ControlPlane, path: str, *, phase: str) -> dict[str, Any]:
    """Of the pod, once it is in that phase; empty until then."""
    status: dict[str, Any] = server.request("GET", path).json()["status"]
    return status if status.get("phase") == phase else {}
