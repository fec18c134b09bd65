"""A node that runs pods for real: containerd, a bridge for their addresses, and the kubelet."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.e2e.product import free_ports
from tests.kubernetes import images, processes
from tests.kubernetes.building import PAUSE

READY_WITHIN = 120.0
_PLUGINS = Path("/usr/lib/cni")
_CONTAINERD = """version = 2
root = "{folder}/root"
state = "{folder}/state"

[grpc]
  address = "{socket}"

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  # The kernel refuses others here, and without this no sandbox starts.
  restrict_oom_score_adj = true

  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "native"

    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"

  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{plugins}"
    conf_dir = "{folder}/cni"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RealNode:
    name: str
    folder: Path
    programs: Path
    #: The bridge of its pods, its address, and the network behind it.
    bridge: str
    address: str
    network: str

    @property
    def socket(self) -> Path:
        return self.folder / "containerd.sock"

    def start(self, *, kubeconfig: Path) -> None:
        """:raises DidNotStart: with what containerd or the kubelet said."""
        self._make_bridge()
        self._start_containerd()
        self._start_kubelet(kubeconfig)

    def stop(self) -> None:
        """End the kubelet, every container, containerd, and take mounts and bridge away."""
        processes.stop("kubelet", folder=self.folder)
        self._end_containers()
        processes.stop("containerd", folder=self.folder)
        mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
        for mount in sorted((one for one in mounts if one.startswith(str(self.folder))), key=len)[
            ::-1
        ]:
            subprocess.run(("umount", "--lazy", mount), check=False, capture_output=True)
        subprocess.run(("ip", "link", "delete", self.bridge), check=False, capture_output=True)

    def import_images(self, archive: Path) -> None:
        """Make the images of the archive known to containerd."""
        self._ctr("images", "import", "--snapshotter", "native", str(archive)).check_returncode()

    def kill_kubelet(self) -> None:
        """The node falls silent; its pods go on."""
        processes.stop("kubelet", folder=self.folder, hard=True)

    # -- Inside --

    def _make_bridge(self) -> None:
        for arguments in (
            ("link", "add", self.bridge, "type", "bridge"),
            ("address", "add", f"{self.address}/24", "dev", self.bridge),
            ("link", "set", self.bridge, "up"),
        ):
            subprocess.run(("ip", *arguments), check=True, capture_output=True)

    def _start_containerd(self) -> None:
        (self.folder / "cni").mkdir(parents=True)
        plugin = {
            "type": "bridge",
            "bridge": self.bridge,
            "isGateway": True,
            "hairpinMode": True,
            "ipam": {
                "type": "host-local",
                "dataDir": str(self.folder / "addresses"),
                "ranges": [[{"subnet": self.network, "gateway": self.address}]],
                "routes": [{"dst": "0.0.0.0/0"}],
            },
        }
        network = {
            "cniVersion": "0.4.0",
            "name": "pods",
            "plugins": [plugin],
        }
        (self.folder / "cni" / "10-pods.conflist").write_text(json.dumps(network))
        config = self.folder / "containerd.toml"
        config.write_text(
            _CONTAINERD.format(
                folder=self.folder, socket=self.socket, pause=images.PAUSE, plugins=_PLUGINS
            )
        )
        processes.start("containerd", ("containerd", "--config", config), folder=self.folder)
        processes.until(
            lambda: self._ctr("version").returncode == 0,
            name="containerd",
            folder=self.folder,
            within=READY_WITHIN,
        )
        archive = self.folder / "images.tar"
        images.write(archive, pause=self.programs / PAUSE)
        self.import_images(archive)

    def _start_kubelet(self, kubeconfig: Path) -> None:
        port, health = free_ports(2)
        settings: Mapping[str, object] = {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": self.address,
            "port": port,
            "healthzBindAddress": "127.0.0.1",
            "healthzPort": health,
            "readOnlyPort": 0,
            "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"},
            "cgroupDriver": "cgroupfs",
            "cgroupsPerQOS": False,
            "enforceNodeAllocatable": [],
            "failSwapOn": False,
            "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%"},
            # Nothing could pull an image again that a machine with a nearly full disk has removed.
            "imageGCHighThresholdPercent": 100,
            "nodeStatusUpdateFrequency": "4s",
            "syncFrequency": "2s",
            # Calls of the API a second: the default of 5 delays the states of many pods by minutes.
            "kubeAPIQPS": 50,
            "kubeAPIBurst": 100,
            "clusterDomain": "cluster.local",
        }
        config = self.folder / "kubelet.json"
        config.write_text(json.dumps(settings))
        processes.start(
            "kubelet",
            (
                self.programs / "kubelet",
                f"--config={config}",
                f"--kubeconfig={kubeconfig}",
                f"--hostname-override={self.name}",
                f"--node-ip={self.address}",
                f"--root-dir={self.folder / 'kubelet'}",
                f"--cert-dir={self.folder / 'kubelet-certificates'}",
                "--container-runtime=remote",
                f"--container-runtime-endpoint=unix://{self.socket}",
            ),
            folder=self.folder,
        )

    def _ctr(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ("ctr", "--address", str(self.socket), "--namespace", "k8s.io", *arguments),
            check=False,
            capture_output=True,
            text=True,
        )

    def _end_containers(self) -> None:
        """The shims outlive containerd: what they hold ends with them."""
        for task in self._ctr("tasks", "list", "--quiet").stdout.split():
            self._ctr("tasks", "kill", "--signal", "SIGKILL", task)
        for process in psutil.process_iter(("cmdline",)):
            if str(self.socket) in (process.info["cmdline"] or ()) and process.pid != os.getpid():
                with suppress(psutil.NoSuchProcess):
                    if "shim" in process.info["cmdline"][0]:
                        process.send_signal(signal.SIGKILL)


def missing() -> list[str]:
    """Debian packages without which no node runs here."""
    programs = {
        "containerd": "containerd",
        "runc": "runc",
        "iproute2": "ip",
        "iptables": "iptables",
    }
    wanted = [package for package, program in programs.items() if shutil.which(program) is None]
    return wanted + ([] if _PLUGINS.is_dir() else ["containernetworking-plugins"])
