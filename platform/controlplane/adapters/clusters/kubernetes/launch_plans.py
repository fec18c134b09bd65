"""A Launch with everything its objects depend on: cluster profile, cards of the nodes, vendor requirements,
runtime.

The runtime package travels as one zip archive in a ConfigMap of each namespace, named by its content: pods run
the version that rendered their spec, no image has to be rebuilt, and two versions never mix.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Self

from controlplane.adapters.clusters.kubernetes import object_names
from controlplane.adapters.clusters.kubernetes.cluster_profile import ClusterProfile
from controlplane.adapters.clusters.kubernetes.inventory import NodeCard
from controlplane.adapters.clusters.launch_validation import RUNTIME_PACKAGE, runtime_source
from controlplane.ports.chips import VendorPodSettings
from controlplane.ports.clusters import LaunchRefused
from controlplane.ports.launches import AUTHORITIES_FILE, Launch, LaunchRole

ROOT = "/ninefold"
WORK, INPUTS, HOME = f"{ROOT}/working", f"{ROOT}/inputs", f"{ROOT}/home"
ARCHIVE = "ninefold_runtime.zip"
RUNTIME = f"{ROOT}/runtime/{ARCHIVE}"
CONTAINER = "main"
#: The container that downloads inputs before the other starts, its list of them, and where it stores them.
DOWNLOADER = "inputs"
DOWNLOADS, CACHE = f"{ROOT}/downloads", f"{ROOT}/cache"
#: Where it has the certificates of the artifact store's authorities, if the Launch has some.
AUTHORITIES = f"{ROOT}/{AUTHORITIES_FILE}"
#: The key under which the record keeps what observers need of the Launch.
RECORD = "launch.json"
#: Ports of replicas on the pods' own network; on the host's they are drawn by the Launch's name.
FIRST_PORT = 8000
_FIRST_HOST_PORT, _HOST_PORTS = 20_000, 11_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedReplica:
    """Where one process of a role goes."""

    index: int
    node: str
    cards: tuple[NodeCard, ...]
    #: Resources by which nodes with cards repel other workloads, and not this one, which needs none of them.
    tolerated: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchPlan:
    """A Launch with everything that its objects depend on."""

    launch: Launch
    profile: ClusterProfile
    installation: str
    namespace: str
    runtime: RuntimeArchive
    #: By role's name, in index order.
    replicas: Mapping[str, Sequence[PlannedReplica]]
    #: What the chip vendor requires of pods.
    extras: VendorPodSettings
    #: The Launch in whose folder checkpoints lie: itself, or the first of those that it continues.
    checkpoints: str
    #: Whether we choose nodes and devices; otherwise the cluster's scheduler does.
    binds: bool = True
    #: Version of the API by which cards are claimed; empty where device plug-ins offer all of them.
    devices: str = ""

    @property
    def spans_several_nodes(self) -> bool:
        return len({replica.node for each in self.replicas.values() for replica in each}) > 1

    @property
    def host_network(self) -> bool:
        return self.extras.host_network_across_nodes and self.spans_several_nodes

    @property
    def image(self) -> str:
        """:raises LaunchRefused: if none is configured."""
        image = (
            self.profile.image or self.launch.image
            if self.profile.engines and self.launch.engine
            else self.launch.image or self.profile.image
        )
        if not image:
            raise LaunchRefused(
                "launch.image.missing",
                "neither {launch} nor the cluster has an image; set the cluster option image",
                launch=self.launch.name,
            )
        return image

    def claimed(self, replica: PlannedReplica) -> Mapping[str, int]:
        """How many devices the replica claims, by DeviceClass; the others are requested as extended resources."""
        classes = self._device_class_by_resource()
        return Counter(classes[card.resource] for card in replica.cards if card.resource in classes)

    def _device_class_by_resource(self) -> Mapping[str, str]:
        return {each.resource: each.device_class for each in self.profile.device_classes}

    def python(self) -> str:
        engine = self.launch.engine
        if engine is not None and self.profile.engines:
            return f"{self.profile.engines}/{engine.name}/bin/python"
        return self.profile.python

    def ports(self, role: LaunchRole) -> dict[str, int]:
        """The number of each of its ports; another role of the Launch never has the same."""
        first = FIRST_PORT
        if self.host_network:
            first = _FIRST_HOST_PORT + zlib.crc32(self.launch.name.encode()) % _HOST_PORTS
        for each in self.launch.roles:
            if each.name == role.name:
                break
            first += len(each.ports)
        return {name: first + place for place, name in enumerate(role.ports)}

    @property
    def leader(self) -> str:
        """Where replica 0 of the first role is found by the others."""
        pod = object_names.pod_name(self.launch.name, role=self.launch.roles[0].name, index=0)
        return f"{pod}.{self.launch.name}.{self.namespace}.svc"

    def values(self, role: LaunchRole | None, *, index: str = "0") -> dict[str, str]:
        """By which placeholders are filled; of a file, the ports of every role are known."""
        roles = self.launch.roles if role is None else (role,)
        found = {
            "work": WORK,
            "inputs": INPUTS,
            "python": self.python(),
            "index": index,
            "leader": self.leader if self.size > 1 else "127.0.0.1",
        }
        return found | {
            f"port:{name}": str(number)
            for each in roles
            for name, number in self.ports(each).items()
        }

    @property
    def size(self) -> int:
        return sum(len(role.placements) for role in self.launch.roles)

    def owner_labels(self, **more: str) -> dict[str, str]:
        return {**self.fill_launch_names(self.extras.labels), **self.selector_labels(**more)}

    def selector_labels(self, **more: str) -> dict[str, str]:
        """Labels by which objects of the Launch are found; those of the vendor are no part of them."""
        return object_names.owner_labels(
            installation=self.installation, launch=self.launch.name, **more
        )

    def named(self, text: str) -> str:
        """A text of the vendor's with the Launch's name in it."""
        return text.replace("{name}", self.launch.name)

    def fill_launch_names(self, texts: Mapping[str, str]) -> dict[str, str]:
        return {key: self.named(text) for key, text in texts.items()}

    def extended_resources(self, replica: PlannedReplica) -> Mapping[str, int]:
        """Cards that the replica requests, and does not claim, by extended resource."""
        claimed = {"", *self._device_class_by_resource()}
        return Counter(card.resource for card in replica.cards if card.resource not in claimed)

    def continuing(self, checkpoints: str) -> Self:
        """The same, going on in the folder of those checkpoints."""
        return replace(self, checkpoints=checkpoints)

    def record_json(self) -> str:
        """What observers need of the Launch, as JSON; its keys are read in ``launch_status``."""
        launch = self.launch
        return json.dumps(
            {
                "labels": dict(launch.labels),
                "roles": {role.name: len(role.placements) for role in launch.roles},
                "ports": {role.name: self.ports(role) for role in launch.roles},
                "probed": [role.name for role in launch.roles if role.probe is not None],
                "checkpoints": self.checkpoints,
                **({"pinned": True} if launch.pinned else {}),
            }
        )


def config_map_key(path: str) -> str:
    """A file's path as a ConfigMap key, which cannot contain slashes."""
    return "file." + re.sub(r"[^A-Za-z0-9._-]", lambda found: f"_{ord(found[0]):x}_", path)


#: Archives of one content are equal to the byte.
_EPOCH = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeArchive:
    content: bytes
    #: ``ninefold-runtime-<digest>``.
    name: str


@cache
def runtime_archive() -> RuntimeArchive:
    """:raises FileNotFoundError: if the package is not installed beside the control plane."""
    source = runtime_source()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path in sorted(source.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                entry = zipfile.ZipInfo(f"{RUNTIME_PACKAGE}/{path.relative_to(source)}", _EPOCH)
                entry.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(entry, path.read_bytes())
    content = buffer.getvalue()
    digest = hashlib.sha256(content).hexdigest()[:16]
    return RuntimeArchive(content=content, name=f"ninefold-runtime-{digest}")
