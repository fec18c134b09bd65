"""The adapter can do all that it does with the roles of docker/kubernetes/access, and they allow nothing else."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import urllib3

from controlplane.adapters.clusters.kubernetes import KubernetesCluster
from controlplane.adapters.clusters.kubernetes.kubeconfig import from_kubeconfig
from controlplane.adapters.clusters.kubernetes.object_names import POD_SECURITY
from controlplane.adapters.clusters.kubernetes.team_isolation import ENFORCE
from controlplane.ports.clusters import ReplicaPhase
from controlplane.ports.launches import Launch
from tests.contract.cluster_harness import SLEEPS, observed, phase_is, python_role
from tests.contract.waiting import until
from tests.kubernetes import images
from tests.kubernetes.clusters import LiveCluster
from tests.kubernetes.control_planes import kubeconfig as kubeconfig_of
from tests.unit.deployment.kustomizations import KUBERNETES, Manifest, built
from tests.unit.deployment.rights import NAMESPACES, PICTURE, Right, granted

pytestmark = pytest.mark.kubernetes

ACCESS = KUBERNETES / "access"
WITHIN = 120.0
_SINGLE = {"POST": "create", "PATCH": "patch", "DELETE": "delete"}
_PATH = re.compile(
    r"/(?:api|apis/(?P<group>[^/]+))/[^/]+(?:/namespaces/[^/]+(?=/[^/]))?/(?P<resource>[a-z]+)"
    r"(?P<name>/[^/]+)?(?P<part>/[a-z]+)?"
)
#: Of what every account may ask.
_OF_ALL = "authorization.k8s.io"


@dataclass(slots=True)
class Notes:
    """The rights that calls needed."""

    rights: set[Right] = field(default_factory=set)

    def take(self, method: str, address: str, headers: Mapping[str, str]) -> None:
        parts = urlsplit(address)
        found = _PATH.fullmatch(parts.path)
        if found is None or found["group"] == _OF_ALL:
            return
        resource = found["resource"] + (found["part"] or "")
        verbs = [_SINGLE[method]] if method in _SINGLE else []
        if method == "GET":
            watches = "watch" in parse_qs(parts.query)
            verbs = ["watch" if watches else "get" if found["name"] else "list"]
        if "apply-patch" in headers.get("Content-Type", ""):
            # What is not there yet is created by it.
            verbs.append("create")
        self.rights.update((found["group"] or "", resource, verb) for verb in verbs)


@pytest.fixture
def notes(monkeypatch: pytest.MonkeyPatch) -> Notes:
    """Of every call that the adapter makes from here on."""
    taken = Notes()
    request = urllib3.PoolManager.request

    def noted(pool: urllib3.PoolManager, method: str, url: str, **rest: Any) -> Any:
        taken.take(method, url, rest.get("headers") or {})
        return request(pool, method, url, **rest)

    monkeypatch.setattr(urllib3.PoolManager, "request", noted)
    return taken


@pytest.fixture(scope="module")
def token(live_cluster: LiveCluster) -> Iterator[str]:
    """Of the account, once everything in the folder was applied."""
    plane, manifests = live_cluster.control_plane, built(ACCESS)
    for manifest in manifests:
        plane.request("POST", _collection(manifest), body=manifest).raise_for_status()

    def given() -> str:
        path = "/api/v1/namespaces/ninefold/secrets/ninefold-runner-token"
        return str(plane.request("GET", path).json().get("data", {}).get("token", ""))

    yield base64.b64decode(until(given, within=WITHIN, what="the token is given")).decode()
    for manifest in manifests:
        if manifest["kind"] in ("Namespace", "ClusterRole", "ClusterRoleBinding"):
            plane.request("DELETE", f"{_collection(manifest)}/{manifest['metadata']['name']}")
    gone = "/api/v1/namespaces/ninefold"
    until(lambda: plane.request("GET", gone).status_code == 404, within=WITHIN, what="it is empty")


def _collection(manifest: Manifest) -> str:
    version, kind = manifest["apiVersion"], manifest["kind"]
    space = manifest["metadata"].get("namespace")
    group = f"/apis/{version}" if "/" in version else f"/api/{version}"
    return f"{group}{f'/namespaces/{space}' if space else ''}/{kind.lower()}s"


@pytest.fixture
def cluster(live_cluster: LiveCluster, token: str) -> Iterator[KubernetesCluster]:
    """The adapter as that account, and nobody else."""
    yield _adapter(live_cluster, token)
    live_cluster.control_plane.request("DELETE", "/api/v1/namespaces/rights-maps")


def _adapter(live: LiveCluster, token: str) -> KubernetesCluster:
    return KubernetesCluster(
        installation="rights",
        kubeconfig=json.dumps(kubeconfig_of(live.control_plane, token=token)),
        cpu_cards=2,
        reach="node_port",
        namespace="rights",
        **images.PROFILE,
    )


def test_all_that_the_adapter_does_is_allowed_and_nothing_else_is(
    cluster: KubernetesCluster, live_cluster: LiveCluster, token: str, notes: Notes
) -> None:
    messages = [each.message for each in cluster.checks() if each.name == "permissions"]
    assert messages == [f"The account has all required permissions ({_count()})"]
    with _watched(cluster):
        _lived_through(cluster, live_cluster)
        # Another process of ours, which finds the namespace made.
        _lived_through(_adapter(live_cluster, token), live_cluster)
    assert notes.rights == granted(built(ACCESS))


def test_without_its_roles_it_is_told_which_verb_it_lacks(
    cluster: KubernetesCluster, live_cluster: LiveCluster
) -> None:
    plane = live_cluster.control_plane
    bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
    [binding] = [
        each
        for each in built(ACCESS)
        if each["kind"] == "ClusterRoleBinding" and each["metadata"]["name"] == "ninefold-runner"
    ]
    plane.request("DELETE", f"{bindings}/ninefold-runner").raise_for_status()
    try:
        said = until(
            lambda: [each.message for each in cluster.checks() if "create pods" in each.message],
            what="the server has noticed",
        )
    finally:
        plane.request("POST", bindings, body=binding).raise_for_status()
    assert said == ["The account cannot create pods"]


def test_the_script_prints_the_same_access_as_a_kubeconfig(
    live_cluster: LiveCluster, token: str, tmp_path: Path
) -> None:
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("kubectl is not on PATH")
    plane = live_cluster.control_plane
    done = subprocess.run(
        ["sh", ACCESS / "kubeconfig.sh"],
        env={
            "KUBECONFIG": str(live_cluster.kubeconfig),
            "PATH": _path_with(kubectl),
            # It keeps what it discovers there.
            "HOME": str(tmp_path),
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    kubeconfig = from_kubeconfig(done.stdout)
    assert (kubeconfig.server, kubeconfig.token) == (plane.url, token)
    assert kubeconfig.authority.strip() == (plane.folder / "ca.crt").read_text().strip()


def _path_with(program: str) -> str:
    return f"{program.rpartition('/')[0]}:/usr/bin:/bin"


def _count() -> int:
    return len(granted(built(ACCESS)) - {NAMESPACES, PICTURE})


@contextmanager
def _watched(cluster: KubernetesCluster) -> Iterator[None]:
    """Follows the cluster's news meanwhile, until both kinds have been heard of."""
    stopping, pods, nodes = (threading.Event() for _ in range(3))
    thread = threading.Thread(
        target=cluster.watch,
        kwargs={
            "launches_changed": lambda names: pods.set() if names else None,
            "nodes_changed": nodes.set,
            "alive": lambda: None,
            "stopping": stopping,
        },
    )
    thread.start()
    try:
        yield
        assert pods.wait(WITHIN)
        assert nodes.wait(WITHIN)
    finally:
        stopping.set()
        thread.join(WITHIN)


def _lived_through(cluster: KubernetesCluster, live: LiveCluster) -> None:
    """A Launch from its beginning to its end, with every question that is asked of one."""
    assert cluster.inventory()
    role = python_role(f"print('here', flush=True)\n{SLEEPS}", ports=("http",))
    launch = Launch(
        name="attempt-rights",
        roles=(role,),
        files={"spec.json": "{}"},
        secrets={"NINEFOLD_ENGINE_KEY": "only this once"},
        labels={"team": "maps"},
    )
    cluster.launch(launch)
    # As if we had died before the record said that all is there.
    record = "/api/v1/namespaces/rights-maps/configmaps/attempt-rights"
    forgotten = {"metadata": {"annotations": {"ninefold.io/launched": None}}}
    live.control_plane.request(
        "PATCH", record, body=forgotten, kind="application/merge-patch+json"
    ).raise_for_status()
    cluster.launch(launch)
    until(phase_is(cluster, launch.name, ReplicaPhase.RUNNING), within=WITHIN, what="it runs")
    found = cluster.endpoint(launch.name, role="main", index=0, port="http")
    assert found is not None
    assert found.credential == "only this once"
    until(lambda: _log(cluster, launch.name), what="it says something")
    assert {each.kind for each in cluster.objects(launch.name)} >= {"Pod", "Secret", "Service"}
    assert cluster.events(launch.name)
    assert cluster.node("real-1") is not None
    # Its node has cards that MindCluster would look after; what is not there was not refused.
    assert not [
        each for each in cluster.diagnose().unreadable if "lacks the permission" in each.reason
    ]
    assert cluster.taint_node("real-1", "a test of rights")
    cluster.untaint_node("real-1")
    assert cluster.names() == {launch.name}
    _isolated_again(cluster, live)
    cluster.stop(launch.name, grace=timedelta(seconds=1))
    until(lambda: observed(cluster, launch.name).ended, within=WITHIN, what="it ends")
    cluster.remove(launch.name)
    assert cluster.names() == frozenset()


def _isolated_again(cluster: KubernetesCluster, live: LiveCluster) -> None:
    """A namespace as an earlier release left it gets its level and its policy."""
    plane, space = live.control_plane, "/api/v1/namespaces/rights-maps"
    policy = "/apis/networking.k8s.io/v1/namespaces/rights-maps/networkpolicies/ninefold-rights"
    bare = {"metadata": {"labels": {ENFORCE: None}, "annotations": {POD_SECURITY: None}}}
    plane.request("PATCH", space, body=bare, kind="application/merge-patch+json").raise_for_status()
    plane.request("DELETE", policy).raise_for_status()
    cluster.reconcile_isolation()
    # The pods of the tests mount this machine's programs.
    assert plane.request("GET", space).json()["metadata"]["labels"][ENFORCE] == "privileged"
    assert plane.request("GET", policy).json()["spec"]["policyTypes"] == ["Ingress", "Egress"]


def _log(cluster: KubernetesCluster, name: str) -> bool:
    return b"here" in cluster.log(name, role="main", index=0, offset=0, limit=99).content
