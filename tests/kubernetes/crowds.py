"""Many simulated nodes on a real control plane: its store, API, controllers and scheduler, and no kubelet.

A *crowd* makes Node objects with cards and plays the kubelet of each: what the scheduler binds to one of them
starts to run, ends when it is told to, and is let go when it is deleted, as a kubelet does; finalizers stay whose
they are. The controller that taints silent nodes does not run here, so that nodes need no heartbeat.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
import pytest
from urllib3.exceptions import HTTPError

from controlplane.adapters.clusters.kubernetes.api import ApiRefused, KubernetesApi
from controlplane.adapters.clusters.kubernetes.kubeconfig import from_kubeconfig
from controlplane.adapters.clusters.kubernetes.watch_streams import WatchStream
from controlplane.ports.clusters import ClusterError, ClusterUnavailable
from tests.kubernetes import building, clusters, control_planes, processes

#: Of a pod's annotations: with which code its container ends as soon as it runs.
EXIT_CODE = "crowd.test/exit-code"
#: Any address that is not loopback does: nothing asks for it.
_ADVERTISED = "10.77.255.1"
_WATCHED_FOR = 120
_HANDS = 4
_KILLED = 137
#: What the API insists on.
_NODE_INFO = (
    *("machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "operatingSystem"),
    *("architecture", "containerRuntimeVersion", "kubeletVersion", "kubeProxyVersion"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """Equal nodes, numbered over leaves, which are numbered over spines."""

    name: str
    count: int
    resource: str
    labels: Mapping[str, str]
    cards: int = 8
    #: Nodes under one leaf, leaves under one spine.
    per_leaf: int = 8
    per_spine: int = 8

    def node(self, number: int) -> dict[str, Any]:
        """The object of one of them, which is ready and free of taints."""
        leaf, spine = number // self.per_leaf, number // (self.per_leaf * self.per_spine)
        amounts = {"cpu": "96", "memory": "1Ti", "pods": "64", self.resource: str(self.cards)}
        name = f"{self.name}-{number:04}"
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": name,
                "labels": {
                    "kubernetes.io/hostname": name,
                    "crowd.test/kind": self.name,
                    "network.topology.nvidia.com/leaf": f"{self.name}-leaf-{leaf}",
                    "network.topology.nvidia.com/spine": f"{self.name}-spine-{spine}",
                    **self.labels,
                },
            },
            "status": {
                "capacity": amounts,
                "allocatable": amounts,
                "conditions": [_condition("Ready", reason="Simulated")],
                "nodeInfo": dict.fromkeys(_NODE_INFO, "simulated"),
            },
        }


H800 = Kind(
    name="h800",
    count=50,
    resource="nvidia.com/gpu",
    labels={"nvidia.com/gpu.product": "NVIDIA-H800"},
)
#: Two rings of four.
ASCEND_910A = Kind(
    name="a910",
    count=4,
    resource="huawei.com/Ascend910",
    labels={"node.kubernetes.io/npu.chip.name": "910A", "accelerator-type": "module"},
)


@dataclass(slots=True, kw_only=True)
class Crowd:
    """The nodes, and the loop that plays their kubelets."""

    api: KubernetesApi
    #: Of an administrator.
    kubeconfig: str
    api_server: psutil.Process
    stopping: threading.Event = field(default_factory=threading.Event)
    _hands: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(_HANDS))
    _thread: threading.Thread | None = None

    def add(self, *kinds: Kind) -> None:
        """Create their nodes."""
        nodes = [kind.node(number) for kind in kinds for number in range(kind.count)]
        for _ in self._hands.map(lambda node: self.api.create("/api/v1/nodes", node), nodes):
            pass

    def start(self) -> None:
        self._thread = threading.Thread(target=self._follow, name="crowd", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self.stopping.set()
        self._hands.shutdown(wait=True, cancel_futures=True)

    def end(self, namespace: str, name: str, *, code: int = 0) -> None:
        """The pod's container ends with that code."""
        path = f"/api/v1/namespaces/{namespace}/pods/{name}"
        self._set_status(path, _ended(self.api.get(path), code=code))

    def _follow(self) -> None:
        while not self.stopping.is_set():
            with suppress(ClusterUnavailable, ApiRefused, HTTPError):
                version = ""
                for page in self.api.pages("/api/v1/pods"):
                    for pod in page.items:
                        self._hands.submit(self._attend, pod)
                    version = page.version
                while not self.stopping.is_set():
                    version = self._watch(version)

    def _watch(self, version: str) -> str:
        """The version that the watch came to."""
        response = self.api.open_watch(
            "/api/v1/pods",
            query={},
            version=version,
            seconds=_WATCHED_FOR,
            metadata_only=False,
            read_within=_WATCHED_FOR + 15.0,
        )
        with closing(WatchStream(response, idle=_WATCHED_FOR + 15.0)) as stream:
            for event in stream.events(on_activity=lambda: None):
                pod = event["object"]
                version = pod["metadata"]["resourceVersion"]
                if self.stopping.is_set():
                    break
                if event["type"] in ("ADDED", "MODIFIED"):
                    self._hands.submit(self._attend, pod)
        return version

    def _attend(self, pod: Mapping[str, Any]) -> None:
        """One step of a kubelet; what it changes comes back as an event."""
        metadata, status = pod["metadata"], pod.get("status") or {}
        if not pod["spec"].get("nodeName") or self.stopping.is_set():
            return
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
        ended = status.get("phase") in ("Succeeded", "Failed")
        with suppress(ClusterError):
            if metadata.get("deletionTimestamp"):
                if not ended:
                    self._set_status(path, _ended(pod, code=_KILLED))
                # Those that have finalizers stay until these are gone, and need no second word.
                if metadata.get("deletionGracePeriodSeconds"):
                    self.api.delete(path, grace=0, uid=metadata["uid"])
            elif not ended and status.get("phase") != "Running":
                code = (metadata.get("annotations") or {}).get(EXIT_CODE)
                reported = _running(pod) if code is None else _ended(pod, code=int(code))
                self._set_status(path, reported)

    def _set_status(self, path: str, status: Mapping[str, Any]) -> None:
        self.api.merge(f"{path}/status", {"status": status})


@contextmanager
def gathered(*kinds: Kind, say: building.Say) -> Iterator[Crowd]:
    """A control plane of its own with those nodes, for the block.

    :raises NoCluster: where there can be none.
    """
    programs = clusters.programs(say=say)
    folder = Path(tempfile.mkdtemp(prefix="nf-crowd-"))
    plane = control_planes.make_control_plane(folder, programs=programs, nodes=())
    crowd: Crowd | None = None
    try:
        plane.start_etcd()
        # Nodes are new and silent for ever: neither is held against them.
        plane.start_api_server(
            advertised=_ADVERTISED,
            options=("--disable-admission-plugins=TaintNodesByCondition",),
        )
        plane.start_controllers(options=("--controllers=*,-nodelifecycle",))
        kubeconfig = (folder / "admin.kubeconfig").read_text()
        api = KubernetesApi(from_kubeconfig(kubeconfig), rate=1000.0, burst=1000)
        server = processes.running("kube-apiserver", folder=folder)
        assert server is not None
        crowd = Crowd(api=api, kubeconfig=kubeconfig, api_server=server)
        crowd.add(*kinds)
        crowd.start()
        yield crowd
    finally:
        if crowd is not None:
            crowd.stop()
        # Nothing of it is kept: nobody waits until watches have run out.
        for name in ("kube-scheduler", "kube-controller-manager", "kube-apiserver", "etcd"):
            processes.stop(name, folder=folder, hard=True)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def crowd() -> Iterator[Crowd]:
    """For tests that take away what they make there; its nodes are as they were."""
    try:
        with gathered(H800, ASCEND_910A, say=print) as gathered_crowd:
            yield gathered_crowd
    except clusters.NoCluster as reason:
        pytest.skip(str(reason))


def _running(pod: Mapping[str, Any]) -> dict[str, Any]:
    now = _now()
    number = int(pod["metadata"]["uid"][:4], 16)
    return {
        "phase": "Running",
        "startTime": now,
        "hostIP": "10.77.0.1",
        "podIP": f"10.76.{number >> 8}.{number & 255}",
        "conditions": [_condition(kind) for kind in ("Initialized", "PodScheduled", "Ready")],
        "containerStatuses": _containers(
            pod, {"running": {"startedAt": now}}, ready=True, started=True
        ),
    }


def _ended(pod: Mapping[str, Any], *, code: int) -> dict[str, Any]:
    now = _now()
    terminated = {
        "exitCode": code,
        "reason": "Error" if code else "Completed",
        "startedAt": (pod.get("status") or {}).get("startTime") or now,
        "finishedAt": now,
    }
    return {
        "phase": "Failed" if code else "Succeeded",
        "containerStatuses": _containers(
            pod, {"terminated": terminated}, ready=False, started=False
        ),
    }


def _containers(
    pod: Mapping[str, Any], state: Mapping[str, Any], *, ready: bool, started: bool
) -> Sequence[Mapping[str, Any]]:
    return [
        {
            "name": container["name"],
            "image": container["image"],
            "imageID": "simulated",
            "ready": ready,
            "started": started,
            "restartCount": 0,
            "state": state,
        }
        for container in pod["spec"]["containers"]
    ]


def _condition(kind: str, *, reason: str = "") -> dict[str, str]:
    return {"type": kind, "status": "True", "reason": reason, "lastTransitionTime": _now()}


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
