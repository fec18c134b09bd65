"""The operator's settings of one Kubernetes cluster: paths on its nodes, and how its pods are built.

Host paths come from here alone, never from a Launch: users who submit jobs cannot reach a node's disk.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, Self

from controlplane.adapters.clusters.launch_validation import check_launch_identifier
from controlplane.domain.common.reasons import Reason
from controlplane.domain.common.resources import GIB, Bytes
from controlplane.ports.clusters import ClusterError, LaunchRefused

_PATH = re.compile(r"(/[A-Za-z0-9._@+-]+)+")
_SUBDOMAIN = re.compile(
    r"(?=.{1,253}\Z)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*"
)
#: Of an extended resource.
_RESOURCE = re.compile(
    r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?/[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
)
_CHOICES = {
    "reach": ("pod", "node_port"),
    "pull_policy": ("Always", "IfNotPresent", "Never"),
}
#: Least and most of each number.
_BOUNDS = {
    "run_as": (1, 2**31 - 1),
    "shared_memory": (1 << 20, 1 << 42),
    "cpu_cards": (0, 4096),
    "memory_per_card": (1 << 26, 1 << 44),
    "ephemeral_storage": (1 << 26, 1 << 46),
}
_PORTS = range(1, 65_536)


class InvalidClusterProfile(ClusterError):
    """An option of a cluster cannot be used; the message names it and what would be right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedVolume:
    """Storage that pods share: a folder of the nodes, or a claim of the namespace."""

    host_path: str = ""
    claim: str = ""

    def source(self) -> dict[str, Any]:
        """As a pod's volume has it."""
        if self.claim:
            return {"persistentVolumeClaim": {"claimName": self.claim}}
        return {"hostPath": {"path": self.host_path, "type": "Directory"}}

    @classmethod
    def read(cls, value: object, *, option: str) -> Self:
        """:raises InvalidClusterProfile: if it is neither."""
        if not isinstance(value, Mapping) or set(value) not in ({"host_path"}, {"claim"}):
            raise InvalidClusterProfile(
                Reason(
                    "cluster.options.shared_volume",
                    '{option} must be {{"host_path": "/a/path"}} or {{"claim": "a-name"}}, got '
                    "{value}",
                    option=option,
                    value=repr(value),
                )
            )
        [(word, text)] = value.items()
        if word == "claim" and text:
            return cls(claim=_check_name(str(text), option=f"{option}.claim"))
        path = str(value.get("host_path", ""))
        return cls(host_path=_check_path(path, option=f"{option}.host_path"))


@dataclass(frozen=True, slots=True, kw_only=True)
class HostMount:
    """A folder of the nodes that every pod sees, read-only."""

    host_path: str
    at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EgressRule:
    """Addresses that pods may reach beyond DNS, each other and the control plane."""

    cidr: str
    #: TCP ports; empty means every port and protocol.
    ports: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DraDeviceClass:
    """A DeviceClass of a DRA driver whose devices represent an extended resource."""

    resource: str
    device_class: str
    driver: str
    #: Attributes by which the driver describes those devices, such as ``{"type": "gpu"}``; it may publish others.
    attributes: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterProfile:
    """The options of a cluster, checked."""

    #: Before the team's name in the names of namespaces.
    namespace: str = "ninefold"
    #: For Launches that bring no image of their own; empty: those are refused.
    image: str = ""
    #: The interpreter in images without an engine's environment.
    python: str = "python3"
    #: The folder of the nodes, below one of ``mounts``, where engines' environments lie by name; empty: images
    #: bring what an engine needs.
    engines: str = ""
    mounts: tuple[HostMount, ...] = ()
    #: The artifact store's root, for inputs; None: Launches with inputs are refused.
    store: SharedVolume | None = None
    #: Where working folders outlive their pods, so that a later attempt continues from its checkpoints; None: a
    #: folder of the pod.
    work: SharedVolume | None = None
    pull_policy: str = "IfNotPresent"
    #: A secret in each namespace with which images are pulled.
    pull_secret: str = ""
    #: Of ``/dev/shm``: data loaders and collectives need it.
    shared_memory: Bytes = Bytes(8 * GIB)
    #: How the gateway comes to a replica: by the pod's address, or by a port of its node.
    reach: str = "pod"
    #: The account of pods that need no root, as the image has it.
    run_as: int = 65_532
    #: Whether nothing but volumes can be written; some engines' images need their root.
    read_only_root: bool = True
    #: Processor cards for each node without accelerators; 0: such nodes accept no workloads.
    cpu_cards: int = 0
    #: Memory limit of a pod for each of its cards, where the spec sets none.
    memory_per_card: Bytes = Bytes(64 * GIB)
    #: Limit of what a pod writes to its own folders, its log and its image together.
    ephemeral_storage: Bytes = Bytes(100 * GIB)
    #: From where the gateway reaches engines, beside its own pods on the same cluster.
    gateway_cidrs: tuple[str, ...] = ()
    #: What pods may reach beyond DNS, each other and the control plane.
    egress: tuple[EgressRule, ...] = ()
    #: Accelerators that a DRA driver offers, on clusters from 1.32 on; others come from device plug-ins.
    device_classes: tuple[DraDeviceClass, ...] = ()
    #: The address at which pods reach the product; read by the renderer of the Launch.
    control_url: str = ""

    @classmethod
    def read(cls, options: Mapping[str, Any]) -> Self:
        """:raises InvalidClusterProfile: if an option is unknown or cannot be used."""
        known = {field.name for field in fields(cls)}
        unknown = sorted(set(options) - known)
        if unknown:
            raise InvalidClusterProfile(
                Reason(
                    "cluster.options.unknown",
                    "unknown option {option}; the options of a Kubernetes cluster are {options}",
                    option=repr(unknown[0]),
                    options=", ".join(sorted(known)),
                )
            )
        values = dict(options)
        for option, value in options.items():
            if option in _LISTS:
                if not isinstance(value, Sequence) or isinstance(value, str):
                    raise InvalidClusterProfile(
                        Reason(
                            "cluster.options.not_a_list",
                            "{option} must be a list, got {value}",
                            option=option,
                            value=repr(value),
                        )
                    )
                parse = _LISTS[option]
                values[option] = tuple(
                    parse(each, f"{option}[{number}]") for number, each in enumerate(value)
                )
            elif option in ("store", "work"):
                if value is not None:
                    values[option] = SharedVolume.read(value, option=option)
            else:
                _check_kind(option, value)
        profile = cls(**values)
        profile.check()
        return profile

    def check(self) -> None:
        """:raises InvalidClusterProfile: if a value cannot be used."""
        _check_name(self.namespace, option="namespace")
        for option, allowed in _CHOICES.items():
            if (value := getattr(self, option)) not in allowed:
                raise InvalidClusterProfile(
                    Reason(
                        "cluster.options.not_a_choice",
                        "{option} must be one of {choices}, got {value}",
                        option=option,
                        choices=", ".join(allowed),
                        value=repr(value),
                    )
                )
        if self.pull_secret:
            _check_name(self.pull_secret, option="pull_secret")
        if self.engines:
            _check_path(self.engines, option="engines")
        for option, (least, most) in _BOUNDS.items():
            number = getattr(self, option)
            if not least <= number <= most:
                raise InvalidClusterProfile(
                    Reason(
                        "cluster.options.out_of_range",
                        "{option} must be from {minimum} to {maximum}, got {value}",
                        option=option,
                        minimum=least,
                        maximum=most,
                        value=number,
                    )
                )
        resources = [each.resource for each in self.device_classes]
        for number, resource in enumerate(resources):
            if resource in resources[:number]:
                raise InvalidClusterProfile(
                    Reason(
                        "cluster.options.duplicate_resource",
                        "device_classes[{index}].resource is listed twice: {resource}",
                        index=number,
                        resource=resource,
                    )
                )


def _check_kind(option: str, value: object) -> None:
    """What JSON brings: a text, a number or yes and no, whichever the option is."""
    if option in _BOUNDS:
        if not isinstance(value, int) or isinstance(value, bool):
            raise InvalidClusterProfile(
                Reason(
                    "cluster.options.not_an_integer",
                    "{option} must be an integer, got {value}",
                    option=option,
                    value=repr(value),
                )
            )
    elif option == "read_only_root":
        if not isinstance(value, bool):
            raise InvalidClusterProfile(
                Reason(
                    "cluster.options.not_a_boolean",
                    "{option} must be true or false, got {value}",
                    option=option,
                    value=repr(value),
                )
            )
    elif not isinstance(value, str):
        raise InvalidClusterProfile(
            Reason(
                "cluster.options.not_a_string",
                "{option} must be a string, got {value}",
                option=option,
                value=repr(value),
            )
        )


def _parse_mount(value: object, option: str) -> HostMount:
    if not isinstance(value, Mapping) or set(value) != {"host_path", "at"}:
        raise InvalidClusterProfile(
            Reason(
                "cluster.options.mount",
                '{option} must be {{"host_path": "/a/path", "at": "/a/path"}}, got {value}',
                option=option,
                value=repr(value),
            )
        )
    paths = {
        word: _check_path(str(value[word]), option=f"{option}.{word}")
        for word in ("host_path", "at")
    }
    return HostMount(**paths)


def _parse_egress_rule(value: object, option: str) -> EgressRule:
    if not isinstance(value, Mapping) or not {"cidr"} <= set(value) <= {"cidr", "ports"}:
        raise InvalidClusterProfile(
            Reason(
                "cluster.options.egress_rule",
                '{option} must be {{"cidr": "10.0.0.0/16", "ports": [443]}}, got {value}',
                option=option,
                value=repr(value),
            )
        )
    ports = value.get("ports", [])
    if not isinstance(ports, list) or not all(
        isinstance(port, int) and not isinstance(port, bool) and port in _PORTS for port in ports
    ):
        raise InvalidClusterProfile(
            Reason(
                "cluster.options.egress_ports",
                "{option}.ports must be a list of numbers from 1 to 65535, got {value}",
                option=option,
                value=repr(ports),
            )
        )
    return EgressRule(cidr=_parse_cidr(value["cidr"], f"{option}.cidr"), ports=tuple(ports))


def _parse_device_class(value: object, option: str) -> DraDeviceClass:
    needed, allowed = {"resource", "device_class", "driver"}, {"attributes"}
    if not isinstance(value, Mapping) or not needed <= set(value) <= needed | allowed:
        raise InvalidClusterProfile(
            Reason(
                "cluster.options.device_class",
                '{option} must be {{"resource": "nvidia.com/gpu", "device_class": "gpu.nvidia.com", '
                '"driver": "gpu.nvidia.com", "attributes": {{"type": "gpu"}}}}, got {value}',
                option=option,
                value=repr(value),
            )
        )
    for word in sorted(needed):
        pattern = _RESOURCE if word == "resource" else _SUBDOMAIN
        if not isinstance(value[word], str) or not pattern.fullmatch(value[word]):
            raise InvalidClusterProfile(
                Reason(
                    "cluster.options.invalid_name",
                    "{option} must be a valid Kubernetes name, got {value}",
                    option=f"{option}.{word}",
                    value=repr(value[word]),
                )
            )
    attributes = value.get("attributes", {})
    if not isinstance(attributes, Mapping) or not all(
        isinstance(each, str) for pair in attributes.items() for each in pair
    ):
        raise InvalidClusterProfile(
            Reason(
                "cluster.options.device_attributes",
                "{option}.attributes must be an object with string values, got {value}",
                option=option,
                value=repr(attributes),
            )
        )
    return DraDeviceClass(**{**value, "attributes": dict(attributes)})


def _parse_cidr(value: object, option: str) -> str:
    """:raises InvalidClusterProfile: if it is no network, or has bits set behind its prefix."""
    try:
        return str(ipaddress.ip_network(value if isinstance(value, str) else ""))
    except ValueError:
        raise InvalidClusterProfile(
            Reason(
                "cluster.options.not_a_network",
                "{option} must be a network such as 10.0.0.0/16 or fd00::/64, got {value}",
                option=option,
                value=repr(value),
            )
        ) from None


def _check_path(path: str, *, option: str) -> str:
    if not _PATH.fullmatch(path) or ".." in path.split("/"):
        raise InvalidClusterProfile(
            Reason(
                "cluster.options.not_a_path",
                "{option} must be an absolute path without '..', got {value}",
                option=option,
                value=repr(path),
            )
        )
    return path


def _check_name(name: str, *, option: str) -> str:
    try:
        check_launch_identifier(name, what=option)
    except LaunchRefused as refusal:
        raise InvalidClusterProfile(str(refusal)) from refusal
    return name


#: By option that is a list, what reads one of its values.
_LISTS: Final[Mapping[str, Callable[[object, str], object]]] = {
    "mounts": _parse_mount,
    "gateway_cidrs": _parse_cidr,
    "egress": _parse_egress_rule,
    "device_classes": _parse_device_class,
}
