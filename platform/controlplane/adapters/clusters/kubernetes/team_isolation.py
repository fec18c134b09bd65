"""What separates a team's namespace from the rest of a cluster: Pod Security labels and a NetworkPolicy. Pure.

Pod Security levels are those of https://kubernetes.io/docs/concepts/security/pod-security-standards/: our pods
satisfy ``restricted`` unless a vendor's driver or an option of the cluster needs folders or the network of
the node.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final
from urllib.parse import urlsplit

from controlplane.adapters.clusters.kubernetes import object_names
from controlplane.adapters.clusters.kubernetes.api import (
    Manifest,
    annotations_of,
    api_object,
    labels_of,
)
from controlplane.adapters.clusters.kubernetes.cluster_profile import ClusterProfile
from controlplane.adapters.clusters.kubernetes.launch_plans import FIRST_PORT

ENFORCE: Final = "pod-security.kubernetes.io/enforce"
_WARN: Final = "pod-security.kubernetes.io/warn"
_DNS_PORT: Final = 53
#: Where NodeLocal DNSCache listens (https://kubernetes.io/docs/tasks/administer-cluster/nodelocaldns/).
_NODE_LOCAL_DNS: Final = "169.254.20.10/32"
#: The port of the control plane's pods, as docker/kubernetes/base/web.yaml has it.
_WEB_PORT: Final = 8000
_SCHEME_PORTS: Final = {"http": 80, "https": 443}


class PodSecurityLevel(StrEnum):
    """Pod Security Standards that our pods can satisfy."""

    RESTRICTED = "restricted"
    #: Baseline forbids folders and the network of the node already, so nothing lies between the two.
    PRIVILEGED = "privileged"


def required_pod_security(pods: Iterable[Mapping[str, Any]]) -> PodSecurityLevel:
    """The strictest level that all of the pods satisfy."""
    specs = [pod["spec"] for pod in pods]
    needs_node = any(
        spec.get("hostNetwork") or any("hostPath" in volume for volume in spec.get("volumes") or ())
        for spec in specs
    )
    return PodSecurityLevel.PRIVILEGED if needs_node else PodSecurityLevel.RESTRICTED


def security_labels(level: PodSecurityLevel) -> dict[str, str]:
    return {ENFORCE: level.value, _WARN: level.value}


def namespace_manifest(name: str, *, installation: str, level: PodSecurityLevel) -> Manifest:
    labels = {**object_names.owner_labels(installation=installation), **security_labels(level)}
    annotations = {object_names.POD_SECURITY: level.value}
    return api_object("Namespace", {"name": name, "labels": labels, "annotations": annotations})


def pod_security_label_patch(
    namespace: Mapping[str, Any], level: PodSecurityLevel
) -> Manifest | None:
    """A merge patch that gives the namespace that level; None where it is to stay as it is.

    A level set by others stays, and ours is only ever relaxed: other pods may rely on it.
    """
    now = labels_of(namespace).get(ENFORCE)
    ours = annotations_of(namespace).get(object_names.POD_SECURITY)
    if now is not None and (now != ours or now in (level, PodSecurityLevel.PRIVILEGED)):
        return None
    return {
        "metadata": {
            "labels": security_labels(level),
            "annotations": {object_names.POD_SECURITY: level.value},
        }
    }


def network_policy(
    name: str, *, installation: str, profile: ClusterProfile, control_plane: Sequence[str] = ()
) -> Manifest:
    """Pods of a team reach each other, DNS and the control plane; only the gateway reaches their engine port.

    :param control_plane: IP addresses of ``control_url``, where it leads out of the cluster.
    """
    ours = {"podSelector": {"matchLabels": object_names.owner_labels(installation=installation)}}
    gateway = [_component_peer("gateway"), *map(_ip_block_peer, profile.gateway_cidrs)]
    dns = {"namespaceSelector": {}, "podSelector": {"matchLabels": {"k8s-app": "kube-dns"}}}
    egress = [
        {"to": [ours]},
        {
            "to": [dns, _ip_block_peer(_NODE_LOCAL_DNS)],
            "ports": [{"protocol": "UDP", "port": _DNS_PORT}, *_tcp_ports(_DNS_PORT)],
        },
        {"to": [_component_peer("web")], "ports": _tcp_ports(_WEB_PORT)},
        *_control_plane_egress_rules(profile.control_url, control_plane),
    ]
    for rule in profile.egress:
        ports = {"ports": _tcp_ports(*rule.ports)} if rule.ports else {}
        egress.append({"to": [_ip_block_peer(rule.cidr)], **ports})
    metadata = {
        "name": f"{object_names.PRODUCT}-{installation}"[:63],
        "namespace": name,
        "labels": object_names.owner_labels(installation=installation),
    }
    spec = {
        **ours,
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [{"from": [ours]}, {"from": gateway, "ports": _tcp_ports(FIRST_PORT)}],
        "egress": egress,
    }
    version = "networking.k8s.io/v1"
    return api_object("NetworkPolicy", metadata, version=version, spec=spec)


def external_host(url: str) -> str:
    """The host of the URL if it is no Service of a cluster; empty if it is, or there is none."""
    host = urlsplit(url).hostname or ""
    return "" if host.endswith((".svc", ".svc.cluster.local")) else host


def _control_plane_egress_rules(url: str, addresses: Sequence[str]) -> Iterable[Manifest]:
    if not addresses:
        return
    parts = urlsplit(url)
    port = parts.port or _SCHEME_PORTS.get(parts.scheme, _SCHEME_PORTS["https"])
    blocks = [_ip_block_peer(str(ipaddress.ip_network(address))) for address in sorted(addresses)]
    yield {"to": blocks, "ports": _tcp_ports(port)}


def _component_peer(component: str) -> Manifest:
    """Pods of Ninefold itself, where it runs on the same cluster."""
    product: Mapping[str, str] = {"app.kubernetes.io/name": object_names.PRODUCT}
    return {
        "namespaceSelector": {"matchLabels": dict(product)},
        "podSelector": {"matchLabels": {**product, "app.kubernetes.io/component": component}},
    }


def _ip_block_peer(cidr: str) -> Manifest:
    return {"ipBlock": {"cidr": cidr}}


def _tcp_ports(*ports: int) -> list[Manifest]:
    return [{"protocol": "TCP", "port": port} for port in ports]
