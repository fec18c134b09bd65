"""Options of a cluster: each is used as it is meant, or refused with its name and what would be right."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane.adapters.clusters.kubernetes.cluster_profile import (
    ClusterProfile,
    HostMount,
    SharedVolume,
)
from controlplane.ports.clusters import InvalidClusterOption


def test_options_are_read_from_json() -> None:
    profile = ClusterProfile.read(
        {
            "image": "company/engine:1",
            "mounts": [{"host_path": "/opt/models", "at": "/models"}],
            "store": {"claim": "artifacts"},
            "work": {"host_path": "/mnt/work"},
            "reach": "node_port",
        }
    )
    assert profile.mounts == (HostMount(host_path="/opt/models", at="/models"),)
    assert profile.store == SharedVolume(claim="artifacts")
    assert profile.work == SharedVolume(host_path="/mnt/work")
    assert profile.namespace == "ninefold"


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown option": ({"imgae": "x"}, "imgae is not an option"),
    "a relative path": ({"engines": "opt/engines"}, "engines must be an absolute path"),
    "a path above": (
        {"mounts": [{"host_path": "/a/../etc", "at": "/b"}]},
        r"mounts\[0\].host_path",
    ),
    "a mount without its place": ({"mounts": [{"host_path": "/a"}]}, r"mounts\[0\].at is required"),
    "mounts that are a text": ({"mounts": "/a"}, "mounts must be a list"),
    "a store of both kinds": ({"store": {"claim": "a", "host_path": "/b"}}, "store must be"),
    "a store of neither kind": ({"store": {}}, "store must be"),
    "a mount with more": (
        {"mounts": [{"host_path": "/a", "at": "/b", "mode": "rw"}]},
        r"mounts\[0\].mode is not an option",
    ),
    "a claim with a slash": ({"work": {"claim": "a/b"}}, "work.claim"),
    "an unknown way in": (
        {"reach": "tunnel"},
        "reach must be one of pod, node_port",
    ),
    "root": ({"run_as": 0}, "run_as must be from 1"),
    "a number that is a text": ({"cpu_cards": "2"}, "cpu_cards must be an integer"),
    "yes for a number": ({"cpu_cards": True}, "cpu_cards must be an integer"),
    "a text that is a number": ({"image": 7}, "image must be a string"),
    "a word for yes": ({"read_only_root": "yes"}, "read_only_root must be true or false"),
    "no memory": ({"memory_per_card": 0}, "memory_per_card must be from"),
    "a gateway that is a host": (
        {"gateway_cidrs": ["gw"]},
        r"gateway_cidrs\[0\] must be a network",
    ),
    "a network with host bits": (
        {"egress": [{"cidr": "10.0.0.1/8"}]},
        r"egress\[0\].cidr must be a",
    ),
    "a rule without a network": ({"egress": [{"ports": [1]}]}, r"egress\[0\].cidr is required"),
    "port 0": (
        {"egress": [{"cidr": "10.0.0.0/8", "ports": [0]}]},
        r"egress\[0\].ports\[0\] must be from 1",
    ),
    "an egress of one rule": ({"egress": {"cidr": "10.0.0.0/8"}}, "egress must be a list"),
    "a class without its driver": (
        {"device_classes": [{"resource": "nvidia.com/gpu", "device_class": "gpu"}]},
        r"device_classes\[0\].driver is required",
    ),
    "a resource without its domain": (
        {"device_classes": [{"resource": "gpu", "device_class": "gpu", "driver": "gpu"}]},
        r"device_classes\[0\].resource",
    ),
    "an attribute that is a number": (
        {
            "device_classes": [
                {
                    "resource": "nvidia.com/gpu",
                    "device_class": "gpu",
                    "driver": "gpu",
                    "attributes": {"index": 1},
                }
            ]
        },
        r"device_classes\[0\].attributes",
    ),
    "a namespace in capitals": ({"namespace": "Ninefold"}, "namespace must be 1 to 63"),
}


@pytest.mark.parametrize(("options", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_an_option_that_cannot_be_used_is_refused_by_name(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidClusterOption, match=message):
        ClusterProfile.read(options)
