"""The whole test cluster in one folder: made, started, found again, stopped."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import requests

from tests.kubernetes import building, control_planes, nodes, processes
from tests.kubernetes.control_planes import ControlPlane
from tests.kubernetes.nodes import RealNode

#: Cards that a real node says it has; nothing behind them.
CARDS: Mapping[str, str] = {"nvidia.com/gpu": "8", "huawei.com/Ascend910": "8"}
NODE = "real-1"
READY_WITHIN = 120.0
_STATE = "cluster.json"


class NoCluster(RuntimeError):
    """It cannot be had on this machine; the message says why, and what would help."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveCluster:
    """A control plane and a node that runs pods."""

    control_plane: ControlPlane
    node: RealNode

    @property
    def kubeconfig(self) -> Path:
        """Of an administrator."""
        return self.control_plane.folder / "admin.kubeconfig"

    def start(self) -> None:
        """:raises DidNotStart: with the last words of whatever failed."""
        plane = self.control_plane
        plane.start_etcd()
        # The bridge comes first: its address is the one by which pods reach this machine.
        self.node.folder.mkdir(parents=True, exist_ok=True)
        plane.start_api_server(advertised=_own_address())
        plane.start_controllers()
        self.node.start(kubeconfig=plane.folder / f"kubelet-{self.node.name}.kubeconfig")
        processes.until(
            self._node_ready, name="kubelet", folder=self.node.folder, within=READY_WITHIN
        )
        self.advertise(self.node.name, CARDS)

    def start_api_server(self) -> None:
        """Once more, after it was stopped; what it knew it finds in etcd."""
        self.control_plane.start_api_server(advertised=_own_address())

    def stop(self) -> None:
        self.node.stop()
        self.control_plane.stop()

    def advertise(self, node: str, cards: Mapping[str, str]) -> None:
        """Let the node's status say that it has them, as device plug-ins would."""
        changes = [
            {
                "op": "add",
                "path": f"/status/{where}/{name.replace('/', '~1')}",
                "value": count,
            }
            for name, count in cards.items()
            for where in ("capacity", "allocatable")
        ]
        answer = self.control_plane.request(
            "PATCH",
            f"/api/v1/nodes/{node}/status",
            body=changes,
            kind="application/json-patch+json",
        )
        answer.raise_for_status()

    def status(self) -> dict[str, bool]:
        """By program, whether it runs."""
        plane, node = self.control_plane.folder, self.node.folder
        found = {
            name: processes.running(name, folder=plane) is not None
            for name in ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
        }
        for name in ("containerd", "kubelet"):
            found[name] = processes.running(name, folder=node) is not None
        return found

    def _node_ready(self) -> bool:
        try:
            answer = self.control_plane.request("GET", f"/api/v1/nodes/{self.node.name}")
        except requests.RequestException:
            return False
        # It registers itself a moment after it has started.
        conditions = answer.json()["status"].get("conditions", ()) if answer.ok else ()
        return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def programs(*, say: building.Say) -> Path:
    """The folder with Kubernetes' programs; they are built where that was never done.

    :raises NoCluster: where they cannot be.
    """
    folder = building.cache_folder()
    try:
        if not building.built(folder):
            building.build(folder, say=say)
        lacking = nodes.missing() + ([] if shutil.which("etcd") else ["etcd-server"])
        if lacking:
            say(f"installing {' '.join(lacking)}")
            building.install(lacking)
    except building.CannotBuild as reason:
        raise NoCluster(f"no Kubernetes for the tests: {reason}") from reason
    return folder


def make(folder: Path, *, programs: Path) -> LiveCluster:
    """One that was never started, in an empty folder."""
    folder.mkdir(parents=True, exist_ok=True)
    third = _free_network()
    plane = control_planes.make_control_plane(folder, programs=programs, nodes=(NODE,))
    state = {
        "programs": str(programs),
        "port": plane.port,
        "etcd_ports": plane.etcd_ports,
        "tokens": dict(plane.tokens),
        "third": third,
    }
    (folder / _STATE).write_text(json.dumps(state))
    return _of(folder, state)


def found(folder: Path) -> LiveCluster | None:
    """The one that was made there; None if none was."""
    state = folder / _STATE
    return _of(folder, json.loads(state.read_text())) if state.exists() else None


@contextmanager
def running(*, say: building.Say) -> Iterator[LiveCluster]:
    """One of its own for the block.

    :raises NoCluster: where there can be none.
    """
    ready = programs(say=say)
    # Sockets have short names.
    folder = Path(tempfile.mkdtemp(prefix="nf-k8s-"))
    cluster = make(folder, programs=ready)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _of(folder: Path, state: Mapping[str, object]) -> LiveCluster:
    binaries, third = Path(str(state["programs"])), state["third"]
    tokens, ports = state["tokens"], state["etcd_ports"]
    assert isinstance(tokens, dict)
    assert isinstance(ports, list | tuple)
    return LiveCluster(
        control_plane=ControlPlane(
            folder=folder,
            programs=binaries,
            port=int(str(state["port"])),
            etcd_ports=(ports[0], ports[1]),
            tokens=tokens,
        ),
        node=RealNode(
            name=NODE,
            folder=folder / NODE,
            programs=binaries,
            bridge=f"nf{third}",
            address=f"10.77.{third}.1",
            network=f"10.77.{third}.0/24",
        ),
    )


def _free_network() -> int:
    """The third part of a network that no interface has yet."""
    taken = {
        address.address for addresses in psutil.net_if_addrs().values() for address in addresses
    }
    return next(third for third in range(1, 255) if f"10.77.{third}.1" not in taken)


def _own_address() -> str:
    """An address that is not loopback: the API server insists on one, and never listens there."""
    for name, addresses in psutil.net_if_addrs().items():
        for address in addresses:
            if address.family.name == "AF_INET" and name != "lo":
                return str(address.address)
    raise NoCluster("this machine has no address but loopback's")
