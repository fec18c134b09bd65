"""The operator's settings of one Kubernetes cluster: paths on its nodes, and how its pods are built.

Host paths come from here alone, never from a Launch: users who submit jobs cannot reach a node's disk. pydantic
checks the options by the types of the fields.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, ConfigDict

from controlplane.adapters.clusters.launch_validation import NAME_PATTERN
from controlplane.domain.common.reasons import Reason
from controlplane.domain.common.resources import GIB, Bytes
from controlplane.ports.adapter_options import InvalidOption, read_options
from controlplane.ports.clusters import InvalidClusterOption

_PATH = re.compile(r"(/[A-Za-z0-9._@+-]+)+")
_SUBDOMAIN = re.compile(
    r"(?=.{1,253}\Z)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*"
)
#: Of an extended resource.
_RESOURCE = re.compile(
    r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?/[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
)
_PATH_EXPECTED = Reason("cluster.options.path", "an absolute path without '..'")
_NAME_EXPECTED = Reason("cluster.options.name", "1 to 63 of a-z, 0-9 and '-'")
_KUBERNETES_NAME_EXPECTED = Reason("cluster.options.kubernetes_name", "a valid Kubernetes name")


# Each check returns the value, or raises ValueError with what is expected instead.


def _matching(
    pattern: re.Pattern[str], expected: Reason, *, or_empty: bool = False
) -> AfterValidator:
    def check(text: str) -> str:
        if not (or_empty and not text) and (not pattern.fullmatch(text) or ".." in text.split("/")):
            raise ValueError(expected)
        return text

    return AfterValidator(check)


def _within(least: int, most: int) -> AfterValidator:
    def check(number: int) -> int:
        if not least <= number <= most:
            raise ValueError(
                Reason(
                    "cluster.options.range",
                    "from {minimum} to {maximum}",
                    minimum=least,
                    maximum=most,
                )
            )
        return number

    return AfterValidator(check)


def _network(text: str) -> str:
    """A network without bits set behind its prefix."""
    try:
        return str(ipaddress.ip_network(text))
    except ValueError:
        raise ValueError(
            Reason("cluster.options.network", "a network such as 10.0.0.0/16 or fd00::/64")
        ) from None


_Path = Annotated[str, _matching(_PATH, _PATH_EXPECTED)]
_Name = Annotated[str, _matching(NAME_PATTERN, _NAME_EXPECTED)]
_Subdomain = Annotated[str, _matching(_SUBDOMAIN, _KUBERNETES_NAME_EXPECTED)]
_Network = Annotated[str, AfterValidator(_network)]
#: No other keys than the fields.
_CLOSED = ConfigDict(extra="forbid")


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedVolume:
    """Storage that pods share: a folder of the nodes, or a claim of the namespace."""

    __pydantic_config__: ClassVar = _CLOSED

    host_path: _Path = ""
    claim: _Name = ""

    def source(self) -> dict[str, Any]:
        """As a pod's volume has it."""
        if self.claim:
            return {"persistentVolumeClaim": {"claimName": self.claim}}
        return {"hostPath": {"path": self.host_path, "type": "Directory"}}


def _one_source(volume: SharedVolume) -> SharedVolume:
    if bool(volume.host_path) is bool(volume.claim):
        raise ValueError('{"host_path": "/a/path"} / {"claim": "a-name"}')
    return volume


_Volume = Annotated[SharedVolume, AfterValidator(_one_source)]


@dataclass(frozen=True, slots=True, kw_only=True)
class HostMount:
    """A folder of the nodes that every pod sees, read-only."""

    __pydantic_config__: ClassVar = _CLOSED

    host_path: _Path
    at: _Path


@dataclass(frozen=True, slots=True, kw_only=True)
class EgressRule:
    """Addresses that pods may reach beyond DNS, each other and the control plane."""

    __pydantic_config__: ClassVar = _CLOSED

    cidr: _Network
    #: TCP ports; empty means every port and protocol.
    ports: tuple[Annotated[int, _within(1, 65_535)], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DraDeviceClass:
    """A DeviceClass of a DRA driver whose devices represent an extended resource."""

    __pydantic_config__: ClassVar = _CLOSED

    resource: Annotated[str, _matching(_RESOURCE, _KUBERNETES_NAME_EXPECTED)]
    device_class: _Subdomain
    driver: _Subdomain
    #: Attributes by which the driver describes those devices, such as ``{"type": "gpu"}``; it may publish others.
    attributes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterProfile:
    """The options of a cluster, checked."""

    __pydantic_config__: ClassVar = _CLOSED

    #: Before the team's name in the names of namespaces.
    namespace: _Name = "ninefold"
    #: For Launches that bring no image of their own; empty: those are refused.
    image: str = ""
    #: The interpreter in images without an engine's environment.
    python: str = "python3"
    #: The folder of the nodes, below one of ``mounts``, where engines' environments lie by name; empty: images
    #: bring what an engine needs.
    engines: Annotated[str, _matching(_PATH, _PATH_EXPECTED, or_empty=True)] = ""
    mounts: tuple[HostMount, ...] = ()
    #: The artifact store's root, for inputs; None: inputs are downloaded from a store that signs URLs.
    store: _Volume | None = None
    #: Where downloaded inputs stay for later pods, writable for ``run_as``; None: a folder of the pod.
    cache: _Volume | None = None
    #: Limit of ``cache``, on each node or of the claim.
    cache_size: Annotated[Bytes, _within(1 << 26, 1 << 50)] = Bytes(500 * GIB)
    #: Where working folders outlive their pods, so that a later attempt continues from its checkpoints; None: a
    #: folder of the pod.
    work: _Volume | None = None
    pull_policy: Literal["Always", "IfNotPresent", "Never"] = "IfNotPresent"
    #: A secret in each namespace with which images are pulled.
    pull_secret: Annotated[str, _matching(NAME_PATTERN, _NAME_EXPECTED, or_empty=True)] = ""
    #: Of ``/dev/shm``: data loaders and collectives need it.
    shared_memory: Annotated[Bytes, _within(1 << 20, 1 << 42)] = Bytes(8 * GIB)
    #: How the gateway comes to a replica: by the pod's address, or by a port of its node.
    reach: Literal["pod", "node_port"] = "pod"
    #: The account of pods that need no root, as the image has it.
    run_as: Annotated[int, _within(1, 2**31 - 1)] = 65_532
    #: Whether nothing but volumes can be written; some engines' images need their root.
    read_only_root: bool = True
    #: Processor cards for each node without accelerators; 0: such nodes accept no workloads.
    cpu_cards: Annotated[int, _within(0, 4096)] = 0
    #: Memory limit of a pod for each of its cards, where the spec sets none.
    memory_per_card: Annotated[Bytes, _within(1 << 26, 1 << 44)] = Bytes(64 * GIB)
    #: Limit of what a pod writes to its own folders, its log and its image together.
    ephemeral_storage: Annotated[Bytes, _within(1 << 26, 1 << 46)] = Bytes(100 * GIB)
    #: From where the gateway reaches engines, beside its own pods on the same cluster.
    gateway_cidrs: tuple[_Network, ...] = ()
    #: What pods may reach beyond DNS, each other and the control plane.
    egress: tuple[EgressRule, ...] = ()
    #: Accelerators that a DRA driver offers, on clusters from 1.32 on; others come from device plug-ins.
    device_classes: tuple[DraDeviceClass, ...] = ()
    #: The address at which pods reach the product; read by the renderer of the Launch.
    control_url: str = ""

    @classmethod
    def read(cls, options: Mapping[str, Any]) -> Self:
        """:raises InvalidClusterOption: if an option is unknown or cannot be used."""
        try:
            profile = read_options(cls, options)
        except InvalidOption as error:
            raise InvalidClusterOption(str(error), option=error.option) from error
        if profile.cache and not profile.image:
            # What fills the cache of all teams is not an image that a workload brings.
            raise InvalidClusterOption(
                "cluster.options.cache_without_image",
                "cache is set and image is empty; set image to an image with Python, which "
                "downloads inputs into the cache",
            )
        resources = [each.resource for each in profile.device_classes]
        for number, resource in enumerate(resources):
            if resource in resources[:number]:
                raise InvalidClusterOption(
                    "cluster.options.duplicate_resource",
                    "device_classes[{index}].resource is listed twice: {resource}",
                    index=number,
                    resource=resource,
                )
        return profile
