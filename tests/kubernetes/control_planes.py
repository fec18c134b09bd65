"""etcd, API server, controller manager and scheduler on loopback."""

from __future__ import annotations

import json
import secrets
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import requests

from tests.e2e.product import free_ports
from tests.kubernetes import certificates, processes

READY_WITHIN = 120.0
#: Their accounts, by the names that the API server's own rules know.
ACCOUNTS: Mapping[str, tuple[str, str]] = {
    "admin": ("admin", "system:masters"),
    "controller-manager": ("system:kube-controller-manager", ""),
    "scheduler": ("system:kube-scheduler", ""),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlPlane:
    folder: Path
    programs: Path
    port: int
    etcd_ports: tuple[int, int]
    #: Tokens by account.
    tokens: Mapping[str, str]

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    def start_etcd(self) -> None:
        client, peer = (f"http://127.0.0.1:{port}" for port in self.etcd_ports)
        processes.start(
            "etcd",
            (
                *("etcd", "--name", "one", "--data-dir", self.folder / "etcd"),
                *("--listen-client-urls", client, "--advertise-client-urls", client),
                *("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer),
                *("--initial-cluster", f"one={peer}"),
            ),
            folder=self.folder,
        )

    def start_api_server(self, *, advertised: str, options: Sequence[str] = ()) -> None:
        """:param advertised: an address of this machine that pods reach."""
        folder = self.folder
        processes.start(
            "kube-apiserver",
            (
                self.programs / "kube-apiserver",
                f"--etcd-servers=http://127.0.0.1:{self.etcd_ports[0]}",
                f"--secure-port={self.port}",
                "--bind-address=127.0.0.1",
                f"--advertise-address={advertised}",
                f"--tls-cert-file={folder / 'server.crt'}",
                f"--tls-private-key-file={folder / 'server.key'}",
                f"--service-account-key-file={folder / 'accounts.key'}",
                f"--service-account-signing-key-file={folder / 'accounts.key'}",
                "--service-account-issuer=https://kubernetes.default.svc",
                f"--token-auth-file={folder / 'tokens.csv'}",
                "--authorization-mode=Node,RBAC",
                "--service-cluster-ip-range=10.78.0.0/16",
                "--allow-privileged=true",
                "--kubelet-preferred-address-types=InternalIP",
                *options,
            ),
            folder=folder,
        )
        processes.until(self.ready, name="kube-apiserver", folder=folder, within=READY_WITHIN)

    def start_controllers(self, *, options: Sequence[str] = ()) -> None:
        """:param options: of the controller manager."""
        folder = self.folder
        for name, arguments in (
            (
                "kube-controller-manager",
                (
                    f"--service-account-private-key-file={folder / 'accounts.key'}",
                    f"--root-ca-file={folder / 'ca.crt'}",
                    "--use-service-account-credentials=true",
                    # A node that falls silent is noticed in a test, not in minutes.
                    "--node-monitor-grace-period=16s",
                    "--pod-eviction-timeout=10s",
                    *options,
                ),
            ),
            ("kube-scheduler", ()),
        ):
            config = folder / f"{name.removeprefix('kube-')}.kubeconfig"
            processes.start(
                name,
                (
                    self.programs / name,
                    f"--kubeconfig={config}",
                    "--leader-elect=false",
                    "--bind-address=127.0.0.1",
                    "--port=0",
                    "--secure-port=0",
                    *arguments,
                ),
                folder=folder,
            )

    def ready(self) -> bool:
        try:
            return self.request("GET", "/readyz").status_code == 200
        except requests.RequestException:
            return False

    def request(
        self, method: str, path: str, *, body: object = None, kind: str = "application/json"
    ) -> requests.Response:
        """What the API server answers the administrator."""
        return requests.request(
            method,
            f"{self.url}{path}",
            data=None if body is None else json.dumps(body),
            headers={
                "Authorization": f"Bearer {self.tokens['admin']}",
                "Content-Type": kind,
            },
            verify=str(self.folder / "ca.crt"),
            timeout=10,
        )

    def stop_api_server(self) -> None:
        """As ``kill -9`` does."""
        processes.stop("kube-apiserver", folder=self.folder, hard=True)

    def wipe(self, *prefixes: str) -> None:
        """Take every object below those keys out of the store, past everybody."""
        for prefix in prefixes:
            # The first key behind all that begin so.
            behind = prefix[:-1] + chr(ord(prefix[-1]) + 1)
            keys = {"key": prefix, "range_end": behind}
            answer = requests.post(
                f"http://127.0.0.1:{self.etcd_ports[0]}/v3/kv/deleterange",
                json={name: b64encode(key.encode()).decode() for name, key in keys.items()},
                timeout=10,
            )
            answer.raise_for_status()

    def stop(self) -> None:
        for name in ("kube-scheduler", "kube-controller-manager"):
            processes.stop(name, folder=self.folder)
        # Asked to end, it would wait a minute for open watches.
        self.stop_api_server()
        processes.stop("etcd", folder=self.folder)


def make_control_plane(folder: Path, *, programs: Path, nodes: tuple[str, ...]) -> ControlPlane:
    """Ports, tokens, certificates and kubeconfigs for a control plane that was never started."""
    api, client, peer = free_ports(3)
    accounts = {
        **ACCOUNTS,
        **{f"kubelet-{node}": (f"system:node:{node}", "system:nodes") for node in nodes},
    }
    tokens = {account: secrets.token_hex(16) for account in accounts}
    certificates.write(
        folder, addresses=("127.0.0.1", "10.78.0.1"), names=("localhost", "kubernetes.default")
    )
    rows = (
        f"{tokens[account]},{user},{account}" + (f',"{group}"' if group else "")
        for account, (user, group) in accounts.items()
    )
    _write_secret(folder / "tokens.csv", "\n".join(rows) + "\n")
    control_plane = ControlPlane(
        folder=folder, programs=programs, port=api, etcd_ports=(client, peer), tokens=tokens
    )
    for account, token in tokens.items():
        config = kubeconfig(control_plane, token=token)
        _write_secret(folder / f"{account}.kubeconfig", json.dumps(config, indent=1))
    return control_plane


def kubeconfig(control_plane: ControlPlane, *, token: str) -> dict[str, object]:
    """One that stands for itself: no path of a file in it."""
    authority = b64encode((control_plane.folder / "ca.crt").read_bytes()).decode()
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "clusters": [
            {
                "name": "test",
                "cluster": {
                    "server": control_plane.url,
                    "certificate-authority-data": authority,
                },
            }
        ],
        "users": [{"name": "me", "user": {"token": token}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "me"}}],
    }


def _write_secret(path: Path, text: str) -> None:
    path.touch(mode=0o600)
    path.write_text(text)
