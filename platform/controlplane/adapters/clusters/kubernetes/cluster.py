"""The adapter: maps the calls of the port to reads and writes of objects."""

from __future__ import annotations

import os
import threading
from base64 import b64decode, b64encode
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from math import ceil
from typing import Any, ClassVar

from controlplane.adapters.clusters.kubernetes import (
    connection_checks,
    diagnosis,
    inspection,
    isolation_taints,
    launch_status,
    manifests,
    network_topology,
    object_names,
    pod_logs,
)
from controlplane.adapters.clusters.kubernetes.api import (
    KubernetesApi,
    Object,
    labels_of,
    nested_field,
    object_name,
)
from controlplane.adapters.clusters.kubernetes.cluster_profile import ClusterProfile
from controlplane.adapters.clusters.kubernetes.connection_checks import SchedulerChecks
from controlplane.adapters.clusters.kubernetes.kubeconfig import from_kubeconfig, in_cluster_access
from controlplane.adapters.clusters.kubernetes.launch_status import (
    FoundLaunch,
    only_downloads,
    pod_path,
)
from controlplane.adapters.clusters.kubernetes.launching import PodLauncher
from controlplane.adapters.clusters.kubernetes.team_isolation import required_pod_security
from controlplane.adapters.clusters.kubernetes.watcher import Watcher
from controlplane.adapters.clusters.launch_validation import NAME_PATTERN
from controlplane.domain.common.reasons import Reason
from controlplane.domain.common.resources import Bytes
from controlplane.ports import adapter_registry
from controlplane.ports.clusters import (
    ClusterCheck,
    ClusterDiagnosis,
    ClusterError,
    ClusterEvent,
    ClusterObject,
    LogChunk,
    NodeInspection,
    ObservedLaunch,
    ObservedNode,
    ReplicaEndpoint,
    ReplicaPhase,
)
from ninefold_runtime.weight_cache import downloaded_bytes

#: The secret of a Launch that its engine demands from callers.
ENGINE_KEY = "NINEFOLD_ENGINE_KEY"
#: Most names in the selector of a list request, since the selector is part of the URL.
_NAMES_IN_SELECTOR = 40
#: Most Launches, and pods of one, that are read one by one: a list makes the server read every pod.
_NAMES_BY_THEMSELVES, _PODS_BY_THEMSELVES = 4, 8
#: Number of replicas whose logs fit into a record.
_LOGS_SAVED = 8


class KubernetesCluster(PodLauncher):
    """Implements ``controlplane.ports.clusters.ClusterAdapter`` on Kubernetes, each replica pinned to its node.

    ``installation`` identifies objects of Ninefold there; the options are those of ``ClusterProfile``. With
    ``in_cluster`` the service account of this process's pod is used instead of a kubeconfig.
    """

    runs_images = True
    options_declaration: ClassVar = ClusterProfile

    @property
    def downloads_inputs(self) -> bool:
        """Whether its pods have no volume of the artifact store."""
        return self.profile.store is None

    @property
    def loses_checkpoints(self) -> bool:
        """Whether its pods have no volume for checkpoints."""
        return self.profile.work is None

    @property
    def weight_cache_limit(self) -> Bytes | None:
        return self.profile.cache_size if self.profile.cache else None

    def __init__(
        self, *, installation: str, kubeconfig: str = "", in_cluster: bool = False, **options: Any
    ) -> None:
        profile = ClusterProfile.read(options)
        access = in_cluster_access(os.environ) if in_cluster else from_kubeconfig(kubeconfig)
        super().__init__(KubernetesApi(access), profile=profile, installation=installation)
        self._in_cluster = in_cluster

    def location(self) -> Mapping[str, str]:
        return {
            "in_cluster": "true" if self._in_cluster else "false",
            "kubeconfig": self.api.access.server,
            "namespace": self.profile.namespace,
        }

    def inventory(self) -> tuple[ObservedNode, ...]:
        running = {"fieldSelector": "status.phase!=Succeeded,status.phase!=Failed"}
        pods = self.api.list("/api/v1/pods", query=running)
        nodes, holders = self._devices.inventory(self.api.list("/api/v1/nodes"))
        return self._observed_nodes(
            nodes, pods=(*pods, *holders), hypernodes=self._list_hypernodes()
        )

    def _list_hypernodes(self) -> Sequence[Object]:
        """Volcano's HyperNodes; empty if there are none, or they may not be read."""
        return self.api.list_visible(network_topology.HYPERNODES)

    def reconcile_isolation(self) -> None:
        for space in sorted(self._own_namespaces()):
            ours = object_names.owned_objects_query(installation=self.installation)
            pods = self.api.list(f"/api/v1/namespaces/{space}/pods", query=ours)
            self._reconcile_namespace(space, level=required_pod_security(pods))

    def isolation(self) -> str:
        return Reason(
            "cluster.isolation.pods",
            "Each replica is a pod without root, privileges or a token of the cluster's API; each "
            "team has its own namespace",
        )

    def observe(self, names: Collection[str]) -> Mapping[str, ObservedLaunch]:
        return {
            name: self._with_download_progress(found)
            for name, found in self._find_launches(names).items()
        }

    def _with_download_progress(self, found: FoundLaunch) -> ObservedLaunch:
        """Read from the log of each pod that downloads and does nothing else."""
        done: dict[tuple[str, int], int] = {}
        for replica in found.launch.replicas:
            pod = found.pod(replica.role, replica.index)
            if replica.phase is ReplicaPhase.PREPARING and pod and only_downloads(pod):
                line = pod_logs.last_download_line(self.api, pod_path(pod))
                if (size := downloaded_bytes(line)) is not None:
                    done[replica.role, replica.index] = size
        if not done:
            return found.launch
        replicas = (
            replace(each, downloaded=Bytes(done[each.role, each.index]))
            if (each.role, each.index) in done
            else each
            for each in found.launch.replicas
        )
        return replace(found.launch, replicas=tuple(replicas))

    def _find_launch(self, name: str) -> FoundLaunch | None:
        return self._find_launches([name]).get(name)

    def _find_launches(self, wanted: Collection[str]) -> Mapping[str, FoundLaunch]:
        """The named Launches that exist, by their pods first and by their records where pods are missing."""
        requested_names = sorted(name for name in set(wanted) if NAME_PATTERN.fullmatch(name))
        pods = self._pods_by_launch(requested_names)
        found = {}
        for name in requested_names:
            record = self._find_record(name, pods.get(name, ()))
            if record is not None or name in pods:
                found[name] = launch_status.found_launch(
                    name,
                    pods.get(name, ()),
                    record=record,
                    unavailable_nodes=self._unavailable_nodes(pods.get(name, ())),
                    at=_utc_now(),
                )
        return found

    def _pods_by_launch(self, requested_names: Sequence[str]) -> Mapping[str, Sequence[Object]]:
        """By the Launch's name. A selector saves the server no reading: of many names, all are listed once."""
        if len(requested_names) <= _NAMES_BY_THEMSELVES:
            near = {name: self._launch_pods_by_name(name) for name in requested_names}
            if None not in near.values():
                return {name: pods for name, pods in near.items() if pods}
        few = len(requested_names) <= _NAMES_IN_SELECTOR
        which = f" in ({','.join(requested_names)})" if few else ""
        wanted = set(requested_names)
        pods: dict[str, list[Object]] = {}
        for pod in self._list_pods(which):
            if (name := labels_of(pod)[object_names.LAUNCH]) in wanted:
                pods.setdefault(name, []).append(pod)
                self._launch_namespaces[name] = pod["metadata"]["namespace"]
        return pods

    def _launch_pods_by_name(self, name: str) -> Sequence[Object] | None:
        """Its pods, each read by name, which is cheap for the server; None where a list is needed."""
        space = self._launch_namespaces.get(name)
        if space is None:
            return None
        record = self._read_record(name, space=space)
        places = () if record is None else launch_status.replica_keys(record)
        if not 0 < len(places) <= _PODS_BY_THEMSELVES:
            return None
        paths = (
            f"/api/v1/namespaces/{space}/pods/{object_names.pod_name(name, role=role, index=index)}"
            for role, index in places
        )
        return [pod for pod in map(self.api.found, paths) if pod is not None]

    def _list_pods(self, which: str = "") -> Sequence[Object]:
        """Pods of Launches whose names the selector allows."""
        query = object_names.owned_objects_query(
            installation=self.installation, more=f"{object_names.LAUNCH}{which}"
        )
        pods = self.api.list("/api/v1/pods", query=query)
        return [
            pod
            for pod in pods
            if launch_status.is_pod_created_by_ninefold(pod, prefix=self.profile.namespace)
        ]

    def _find_record(self, name: str, pods: Sequence[Object]) -> Object | None:
        """The record, where the pods alone are not sufficient."""
        if pods and launch_status.has_all_pods(pods):
            return None
        spaces = {pod["metadata"]["namespace"] for pod in pods} or self._own_namespaces()
        records = (self._read_record(name, space=space) for space in sorted(spaces))
        return next((record for record in records if record is not None), None)

    def _read_record(self, name: str, *, space: str) -> Object | None:
        """The record in that namespace, if it belongs to this installation."""
        record = self.api.found(f"/api/v1/namespaces/{space}/configmaps/{name}")
        ours = record and object_names.is_managed_by_installation(
            record, installation=self.installation
        )
        return record if ours else None

    def _own_namespaces(self) -> set[str]:
        """Those that may hold our work: another installation with the same prefix may have created them."""
        query = {"labelSelector": f"{object_names.MANAGED_BY}={object_names.PRODUCT}"}
        found = map(object_name, self.api.list("/api/v1/namespaces", query=query))
        return {name for name in found if name.startswith(f"{self.profile.namespace}-")}

    def _unavailable_nodes(self, pods: Sequence[Object]) -> frozenset[str]:
        """Nodes of those pods that are deleted or fenced; read only where a pod's state is in doubt."""
        suspect_nodes = {
            pod["spec"]["nodeName"]
            for pod in pods
            if launch_status.pod_needs_node_check(pod, at=_utc_now())
        }
        nodes = {name: self.api.found(f"/api/v1/nodes/{name}") for name in suspect_nodes}
        return frozenset(name for name, node in nodes.items() if launch_status.is_fenced(node))

    def names(self) -> frozenset[str]:
        found = list(self._list_pods())
        query = object_names.owned_objects_query(
            installation=self.installation, more=object_names.LAUNCH
        )
        for space in sorted(self._own_namespaces()):
            found += self.api.list(f"/api/v1/namespaces/{space}/configmaps", query=query)
        return frozenset(labels_of(each)[object_names.LAUNCH] for each in found)

    def stop(self, name: str, *, grace: timedelta) -> None:
        found = self._find_launch(name)
        if found is None or found.launch.ended:
            return
        stop_by = _utc_now() + grace
        if found.stop_by is None:
            # Before any pod is deleted: a concurrent launcher then creates no further ones.
            order = {
                "metadata": {"annotations": {object_names.STOP_BY: stop_by.isoformat()}},
                "binaryData": self._collect_logs_to_save(found),
            }
            self.api.merge_if_found(_record_path(found), order)
        else:
            stop_by = found.stop_by
        for pod in found.pods:
            if not pod["metadata"].get("deletionTimestamp"):
                self._delete_pod(pod, stop_by=stop_by)

    def _delete_pod(self, pod: Object, *, stop_by: datetime) -> None:
        path = pod_path(pod)
        self.api.annotate(path, {object_names.STOP_BY: stop_by.isoformat()})
        # 0 would delete the pod without waiting for its node.
        seconds = max(1, ceil((stop_by - _utc_now()).total_seconds()))
        self.api.delete(path, grace=seconds, uid=pod["metadata"]["uid"])

    def _collect_logs_to_save(self, found: FoundLaunch) -> dict[str, str]:
        """Their logs until now, of as many replicas as an object has room for."""
        pods = {launch_status.log_key(pod): pod for pod in found.pods[:_LOGS_SAVED]}
        tails = {key: pod_logs.log_tail(self.api, pod_path(pod)) for key, pod in pods.items()}
        return {key: b64encode(tail).decode("ascii") for key, tail in tails.items()}

    def remove(self, name: str) -> None:
        found = self._find_launch(name)
        if found is None:
            return
        if not found.launch.ended:
            raise ClusterError(
                "launch.removal.not_ended",
                "the launch {launch} has not ended: stop it before removing it",
                launch=name,
            )
        self.delete_launch_objects(found.namespace, name, grace=0)
        self._launch_namespaces.pop(name, None)

    def disk_usage_by_launch(self, names: Collection[str]) -> Mapping[str, Bytes]:
        """Nothing: the folders of a pod go with it, and what outlives it stays in the volume of the profile."""
        return dict.fromkeys(self._find_launches(names), Bytes(0))

    def log(self, name: str, *, role: str, index: int, offset: int, limit: int) -> LogChunk:
        found = self._find_launch(name)
        pod = None if found is None else found.pod(role, index)
        if found is None or pod is None:
            return pod_logs.EMPTY_LOG
        replica = found.replica(role, index)
        return pod_logs.read_log(
            self.api,
            pod_path(pod),
            offset=offset,
            limit=limit,
            ended=replica.ended,
            saved=self._saved_log(found, pod) if replica.ended else b"",
        )

    def _saved_log(self, found: FoundLaunch, pod: Object) -> bytes:
        """The saved end of a log whose container no longer exists."""
        record = self.api.found(_record_path(found)) or {}
        saved = b64decode((record.get("binaryData") or {}).get(launch_status.log_key(pod), ""))
        return pod_logs.append_termination_message(
            saved, launch_status.termination_message(pod).encode()
        )

    def endpoint(self, name: str, *, role: str, index: int, port: str) -> ReplicaEndpoint | None:
        found = self._find_launch(name)
        pod = None if found is None else found.pod(role, index)
        if found is None or pod is None:
            return None
        host, number = pod["status"].get("podIP"), found.ports.get(role, {}).get(port, 0)
        if number and self.profile.reach == "node_port":
            host, number = self._node_port_address(pod, number)
        if not host or not number:
            return None
        shown = f"[{host}]" if ":" in host else host
        path = f"/api/v1/namespaces/{found.namespace}/secrets/{name}"
        credential = manifests.secret_value(self.api.found(path), ENGINE_KEY)
        return ReplicaEndpoint(url=f"http://{shown}:{number}", credential=credential)

    def _node_port_address(self, pod: Object, number: int) -> tuple[str, int]:
        """The address of the pod's node, and the port there that leads to it; empty where not known yet."""
        path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/services/{object_name(pod)}"
        opened = (
            int(each["nodePort"])
            for each in nested_field(self.api.found(path) or {}, "spec", "ports")
            if each["port"] == number and each.get("nodePort")
        )
        return str(pod["status"].get("hostIP") or ""), next(opened, 0)

    def version(self) -> str:
        return str(self.api.get("/version")["gitVersion"])

    def checks(self) -> tuple[ClusterCheck, ...]:
        return connection_checks.connection_checks(
            self.api,
            installation=self.installation,
            profile=self.profile,
            plugins=tuple(adapter_registry.chip_plugins().values()),
            scheduler_checks=self._scheduler_checks(),
        )

    def _scheduler_checks(self) -> SchedulerChecks | None:
        """Checks of the scheduler that places the workloads; None where Ninefold does."""
        return None

    def objects(self, name: str) -> tuple[ClusterObject, ...]:
        found = self._find_launch(name)
        if found is None:
            return ()
        templates = self._devices.templates(found.namespace, name)
        return (
            *inspection.launch_objects(
                self.api, name=name, namespace=found.namespace, installation=self.installation
            ),
            *(
                inspection.displayed_object(each, kind="ResourceClaimTemplate")
                for each in templates
            ),
        )

    def events(self, name: str) -> tuple[ClusterEvent, ...]:
        found = self._find_launch(name)
        if found is None:
            return ()
        return inspection.launch_events(
            self.api, name=name, namespace=found.namespace, installation=self.installation
        )

    def node(self, name: str) -> NodeInspection | None:
        return inspection.node_view(self.api, name=name, installation=self.installation)

    def diagnose(self) -> ClusterDiagnosis:
        return diagnosis.diagnose_cluster(self.api, at=_utc_now())

    def taint_node(self, node: str, reason: str) -> bool:
        return isolation_taints.write_isolation_taint(
            self.api, node, installation=self.installation, reason=reason
        )

    def untaint_node(self, node: str) -> None:
        isolation_taints.write_isolation_taint(
            self.api, node, installation=self.installation, reason=None
        )

    def watch(
        self,
        *,
        launches_changed: Callable[[frozenset[str]], None],
        nodes_changed: Callable[[], None],
        alive: Callable[[], None],
        stopping: threading.Event,
    ) -> None:
        Watcher(self.api, installation=self.installation).watch(
            launches_changed=launches_changed,
            nodes_changed=nodes_changed,
            alive=alive,
            stopping=stopping,
        )


def _record_path(found: FoundLaunch) -> str:
    return f"/api/v1/namespaces/{found.namespace}/configmaps/{found.launch.name}"


def _utc_now() -> datetime:
    return datetime.now(UTC)
