"""The operator's settings of one Kubernetes cluster: paths on its nodes, and how its pods are built.

Host paths come from here alone, never from a Launch: users who submit jobs cannot reach a node's disk.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any, Final, Literal, Self, TypeVar, get_args

from controlplane.adapters.clusters.launch_validation import check_launch_identifier
from controlplane.domain.common.reasons import Reason
from controlplane.domain.common.resources import GIB, Bytes
from controlplane.ports.clusters import InvalidClusterOption, LaunchRefused

_PATH = re.compile(r"(/[A-Za-z0-9._@+-]+)+")
_SUBDOMAIN = re.compile(
    r"(?=.{1,253}\Z)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*"
)
#: Of an extended resource.
_RESOURCE = re.compile(
    r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?/[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
)

PullPolicy = Literal["Always", "IfNotPresent", "Never"]
ReplicaReach = Literal["pod", "node_port"]
_Value = TypeVar("_Value")


class InvalidClusterProfile(InvalidClusterOption):
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
    attributes: Mapping[str, str] = field(default_factory=dict)


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
    #: The artifact store's root, for inputs; None: inputs are downloaded from a store that signs URLs.
    store: SharedVolume | None = None
    #: Where downloaded inputs stay for later pods, writable for ``run_as``; None: a folder of the pod.
    cache: SharedVolume | None = None
    #: Limit of ``cache``, on each node or of the claim.
    cache_size: Bytes = Bytes(500 * GIB)
    #: Where working folders outlive their pods, so that a later attempt continues from its checkpoints; None: a
    #: folder of the pod.
    work: SharedVolume | None = None
    pull_policy: PullPolicy = "IfNotPresent"
    #: A secret in each namespace with which images are pulled.
    pull_secret: str = ""
    #: Of ``/dev/shm``: data loaders and collectives need it.
    shared_memory: Bytes = Bytes(8 * GIB)
    #: How the gateway comes to a replica: by the pod's address, or by a port of its node.
    reach: ReplicaReach = "pod"
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
        known = {each.name for each in fields(cls)}
        if unknown := sorted(set(options) - known):
            raise InvalidClusterProfile(
                "cluster.options.unknown",
                "unknown option {option}; the options of a Kubernetes cluster are {options}",
                option=repr(unknown[0]),
                options=", ".join(sorted(known)),
            )
        profile = cls(
            **{
                option: _PARSERS.get(option, _parse_string)(value, option)
                for option, value in options.items()
            }
        )
        if profile.cache and not profile.image:
            # What fills the cache of all teams is not an image that a workload brings.
            raise InvalidClusterProfile(
                "cluster.options.cache_without_image",
                "cache is set and image is empty; set image to an image with Python, which "
                "downloads inputs into the cache",
            )
        resources = [each.resource for each in profile.device_classes]
        for number, resource in enumerate(resources):
            if resource in resources[:number]:
                raise InvalidClusterProfile(
                    "cluster.options.duplicate_resource",
                    "device_classes[{index}].resource is listed twice: {resource}",
                    index=number,
                    resource=resource,
                )
        return profile


# -- Values of options: each function returns the value, or refuses it by its name --


def _refusal(option: str, expected: str, value: object) -> InvalidClusterProfile:
    return InvalidClusterProfile(
        "cluster.options.not_valid",
        "{option} must be {expected}, got {value}",
        option=option,
        expected=expected,
        value=repr(value),
    )


def _parse_string(value: object, option: str) -> str:
    if not isinstance(value, str):
        raise _refusal(option, Reason("cluster.options.string", "a string"), value)
    return value


def _parse_boolean(value: object, option: str) -> bool:
    if not isinstance(value, bool):
        raise _refusal(option, Reason("cluster.options.boolean", "true or false"), value)
    return value


def _parse_integer(value: object, option: str, *, least: int, most: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise _refusal(option, Reason("cluster.options.integer", "an integer"), value)
    if not least <= value <= most:
        allowed = Reason(
            "cluster.options.range", "from {minimum} to {maximum}", minimum=least, maximum=most
        )
        raise _refusal(option, allowed, value)
    return value


def _parse_choice(value: object, option: str, *, choices: Sequence[str]) -> str:
    if (text := _parse_string(value, option)) not in choices:
        allowed = Reason("cluster.options.choice", "one of {choices}", choices=", ".join(choices))
        raise _refusal(option, allowed, value)
    return text


def _parse_name(value: object, option: str) -> str:
    name = _parse_string(value, option)
    try:
        check_launch_identifier(name, what=option)
    except LaunchRefused as refusal:
        raise InvalidClusterProfile(str(refusal)) from refusal
    return name


def _parse_path(value: object, option: str) -> str:
    path = _parse_string(value, option)
    if not _PATH.fullmatch(path) or ".." in path.split("/"):
        raise _refusal(
            option, Reason("cluster.options.path", "an absolute path without '..'"), path
        )
    return path


def _parse_cidr(value: object, option: str) -> str:
    """A network without bits set behind its prefix."""
    try:
        return str(ipaddress.ip_network(value if isinstance(value, str) else ""))
    except ValueError:
        expected = Reason("cluster.options.network", "a network such as 10.0.0.0/16 or fd00::/64")
        raise _refusal(option, expected, value) from None


def _parse_list(
    value: object, option: str, *, parse: Callable[[object, str], _Value]
) -> tuple[_Value, ...]:
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise _refusal(option, Reason("cluster.options.list", "a list"), value)
    return tuple(parse(each, f"{option}[{number}]") for number, each in enumerate(value))


def _parse_object(
    value: object, option: str, *, example: Mapping[str, object], optional: str = ""
) -> Mapping[str, Any]:
    """An object with the keys of the example, of which one may be optional."""
    if not isinstance(value, Mapping) or set(example) != {*value, *filter(None, [optional])}:
        raise _refusal(option, json.dumps(example), value)
    return value


def _parse_volume(value: object, option: str) -> SharedVolume | None:
    if value is None:
        return None
    if not isinstance(value, Mapping) or set(value) not in ({"host_path"}, {"claim"}):
        raise _refusal(option, '{"host_path": "/a/path"} / {"claim": "a-name"}', value)
    if claim := value.get("claim"):
        return SharedVolume(claim=_parse_name(claim, f"{option}.claim"))
    return SharedVolume(host_path=_parse_path(value.get("host_path", ""), f"{option}.host_path"))


def _parse_mount(value: object, option: str) -> HostMount:
    example = {"host_path": "/a/path", "at": "/a/path"}
    found = _parse_object(value, option, example=example)
    return HostMount(**{key: _parse_path(found[key], f"{option}.{key}") for key in example})


def _parse_egress_rule(value: object, option: str) -> EgressRule:
    example = {"cidr": "10.0.0.0/16", "ports": [443]}
    found = _parse_object(value, option, example=example, optional="ports")
    parse_port = partial(_parse_integer, least=1, most=65_535)
    return EgressRule(
        cidr=_parse_cidr(found["cidr"], f"{option}.cidr"),
        ports=_parse_list(found.get("ports", []), f"{option}.ports", parse=parse_port),
    )


def _parse_device_class(value: object, option: str) -> DraDeviceClass:
    example = {
        "resource": "nvidia.com/gpu",
        "device_class": "gpu.nvidia.com",
        "driver": "gpu.nvidia.com",
        "attributes": {"type": "gpu"},
    }
    found = _parse_object(value, option, example=example, optional="attributes")
    for key in ("device_class", "driver", "resource"):
        pattern = _RESOURCE if key == "resource" else _SUBDOMAIN
        if not isinstance(found[key], str) or not pattern.fullmatch(found[key]):
            expected = Reason("cluster.options.kubernetes_name", "a valid Kubernetes name")
            raise _refusal(f"{option}.{key}", expected, found[key])
    attributes = found.get("attributes", {})
    if not isinstance(attributes, Mapping) or not all(
        isinstance(each, str) for pair in attributes.items() for each in pair
    ):
        expected = Reason("cluster.options.attributes", "an object with string values")
        raise _refusal(f"{option}.attributes", expected, attributes)
    return DraDeviceClass(**{**found, "attributes": dict(attributes)})


def _or_empty(parse: Callable[[object, str], str]) -> Callable[[object, str], str]:
    return lambda value, option: "" if value == "" else parse(value, option)


#: What reads an option; the others are strings.
_PARSERS: Final[Mapping[str, Callable[[object, str], Any]]] = {
    "namespace": _parse_name,
    "engines": _or_empty(_parse_path),
    "mounts": partial(_parse_list, parse=_parse_mount),
    "store": _parse_volume,
    "cache": _parse_volume,
    "cache_size": partial(_parse_integer, least=1 << 26, most=1 << 50),
    "work": _parse_volume,
    "pull_policy": partial(_parse_choice, choices=get_args(PullPolicy)),
    "pull_secret": _or_empty(_parse_name),
    "shared_memory": partial(_parse_integer, least=1 << 20, most=1 << 42),
    "reach": partial(_parse_choice, choices=get_args(ReplicaReach)),
    "run_as": partial(_parse_integer, least=1, most=2**31 - 1),
    "read_only_root": _parse_boolean,
    "cpu_cards": partial(_parse_integer, least=0, most=4096),
    "memory_per_card": partial(_parse_integer, least=1 << 26, most=1 << 44),
    "ephemeral_storage": partial(_parse_integer, least=1 << 26, most=1 << 46),
    "gateway_cidrs": partial(_parse_list, parse=_parse_cidr),
    "egress": partial(_parse_list, parse=_parse_egress_rule),
    "device_classes": partial(_parse_list, parse=_parse_device_class),
}
