"""The sample company's clusters in memory, which say plausible things of themselves."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.apps import AppConfig
from django.utils import timezone

from controlplane.adapters.clusters.volcano.scheduler_configuration import (
    check_scheduler_configuration,
)
from controlplane.adapters.fakes.clusters import FakeCluster
from controlplane.ports import adapter_registry
from controlplane.ports.clusters import (
    CheckVerdict,
    ClusterAdapter,
    ClusterCheck,
    ClusterEvent,
    ClusterObject,
    NodeCondition,
    NodeInspection,
    NodePod,
)

_CHECKS = (
    ("api", CheckVerdict.PASSED, "the API server answers; it is v1.34.2", ""),
    (
        "permissions",
        CheckVerdict.LACKING,
        "the account may not watch events in all namespaces",
        "grant get, list and watch on events to the service account ninefold-control",
    ),
    ("namespaces", CheckVerdict.PASSED, "namespaces can be made", ""),
    ("device-plugins", CheckVerdict.PASSED, "4 nodes offer nvidia.com/gpu", ""),
)
#: Without reclaim and the network topology.
_SCHEDULER_CONFIGURATION = """
actions: "enqueue, allocate, preempt, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: predicates}, {name: capacity, enableHierarchy: true}, {name: nodeorder}]
"""
_POD = """\
apiVersion: v1
kind: Pod
metadata:
  name: {name}-main-0
  namespace: ninefold-maps
  labels:
    ninefold.io/launch: {name}
spec:
  restartPolicy: Never
  containers:
    - name: main
      image: registry.example.com/engines/transformers:4.57
      resources:
        limits:
          nvidia.com/gpu: "4"
          memory: 320Gi
"""


class SampleCluster(FakeCluster):
    """Answers for whatever node or launch it is asked about."""

    def version(self) -> str:
        return "v1.34.2"

    def checks(self) -> tuple[ClusterCheck, ...]:
        scheduler = check_scheduler_configuration(
            _SCHEDULER_CONFIGURATION, resources=["nvidia.com/gpu"]
        )
        return (
            *(
                ClusterCheck(name=name, verdict=verdict, message=message, remedy=remedy)
                for name, verdict, message, remedy in _CHECKS
            ),
            scheduler,
        )

    def objects(self, name: str) -> tuple[ClusterObject, ...]:
        kinds = (("ConfigMap", name), ("Service", name), ("Pod", f"{name}-main-0"))
        return tuple(
            ClusterObject(
                kind=kind, namespace="ninefold-maps", name=called, text=_POD.format(name=name)
            )
            for kind, called in kinds
        )

    def events(self, name: str) -> tuple[ClusterEvent, ...]:
        now = timezone.now()
        about = f"pod/{name}-main-0"
        return (
            ClusterEvent(
                at=now - timedelta(minutes=4),
                warning=False,
                reason="Started",
                message="Started container main",
                about=about,
            ),
            ClusterEvent(
                at=now - timedelta(minutes=9),
                warning=True,
                reason="FailedMount",
                message='MountVolume.SetUp failed for volume "store": timed out waiting for the condition',
                about=about,
                count=3,
            ),
        )

    def node(self, name: str) -> NodeInspection:
        now = timezone.now()
        return NodeInspection(
            name=name,
            conditions=(
                NodeCondition(
                    name="Ready",
                    holds=True,
                    good=True,
                    reason="KubeletReady",
                    message="kubelet is posting ready status",
                    since=now - timedelta(days=12),
                ),
                NodeCondition(
                    name="DiskPressure",
                    holds=True,
                    good=False,
                    reason="KubeletHasDiskPressure",
                    message="kubelet has disk pressure",
                    since=now - timedelta(minutes=20),
                ),
            ),
            pods=(
                NodePod(
                    namespace="ninefold-maps",
                    name="attempt-5a1cf0c2b7-main-0",
                    phase="Running",
                    launch="attempt-5a1cf0c2b7",
                    requests={"cpu": "32", "memory": "320Gi", "nvidia.com/gpu": "4"},
                    started_at=now - timedelta(hours=3),
                ),
                NodePod(
                    namespace="kube-system",
                    name="nvidia-device-plugin-daemonset-x7k2p",
                    phase="Running",
                    launch="",
                    requests={"cpu": "50m"},
                    started_at=now - timedelta(days=12),
                ),
            ),
            events=self.events(name),
            labels={},
            taints=("nvidia.com/gpu=present:NoSchedule",),
            facts={
                "kubelet": "v1.34.2",
                "containerRuntime": "containerd://2.1.4",
                "kernel": "6.8.0-71-generic",
                "allocatable nvidia.com/gpu": "8",
            },
        )


class SampleClusters(AppConfig):
    """Puts them in the place of plain fakes, and lets people register more."""

    name = "tests.e2e"
    label = "sample"

    def ready(self) -> None:
        # Rows that the selectors ask for can be imported only now.
        from apps.fleet import selectors  # noqa: PLC0415

        make = adapter_registry.create_cluster_adapter

        def cluster(kind: str, options: Mapping[str, Any]) -> ClusterAdapter:
            return SampleCluster(**options) if kind == "fake" else make(kind, options)

        adapter_registry.create_cluster_adapter = cluster
        selectors.REMOTE_KINDS = (*selectors.REMOTE_KINDS, "fake")
