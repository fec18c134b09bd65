"""What says where a cluster's work lies: not who asks for it."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from controlplane.adapters.clusters.kubernetes.cluster import KubernetesCluster
from controlplane.ports.clusters import EphemeralCluster, LocatableCluster
from tests.unit.adapters.kubernetes.test_kubeconfig import config


def cluster_at(
    *, server: str = "https://10.0.0.1:6443", token: str = "one", **options: Any
) -> KubernetesCluster:
    document = config()
    # Nothing is said to it, so that the system's authorities will do.
    document["clusters"][0]["cluster"] = {"server": server}
    document["users"][0]["user"] = {"token": token}
    return KubernetesCluster(
        installation="a", kubeconfig=yaml.safe_dump(document), image="engine:1", **options
    )


def location(**changes: Any) -> Any:
    cluster = cluster_at(**changes)
    assert isinstance(cluster, LocatableCluster)
    return cluster.location()


def test_checkpoints_are_lost_unless_a_volume_holds_them() -> None:
    without, shared = cluster_at(), cluster_at(work={"host_path": "/mnt/work"})
    assert isinstance(without, EphemeralCluster)
    assert (without.loses_checkpoints, shared.loses_checkpoints) == (True, False)


@pytest.mark.parametrize(
    "same",
    [{"token": "two"}, {"server": "https://10.0.0.1:6443/"}, {"namespace": "ninefold"}],
)
def test_another_credential_and_what_holds_anyway_move_nothing(same: dict[str, str]) -> None:
    assert location(**same) == location()


@pytest.mark.parametrize(
    ("word", "change"),
    [
        ("kubeconfig", {"server": "https://10.0.0.2:6443"}),
        ("namespace", {"namespace": "another"}),
    ],
)
def test_another_server_and_another_namespace_are_another_place(
    word: str, change: dict[str, str]
) -> None:
    here, there = location(), location(**change)
    assert [key for key in here if here[key] != there[key]] == [word]
