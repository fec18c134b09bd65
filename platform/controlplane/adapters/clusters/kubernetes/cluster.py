"""The adapter itself: it turns the calls of the port into reads and writes of objects."""

from __future__ import annotations

import os
import threading
from base64 import b64decode, b64encode
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from math import ceil
from typing import Any

from controlplane.adapters.clusters.kubernetes import (
    access,
    checks,
    diagnosing,
    inspection,
    inventories,
    manifests,
    marks,
    names,
    topologies,
)
from controlplane.adapters.clusters.kubernetes.api import Api, ApiRefused, Object
from controlplane.adapters.clusters.kubernetes.isolation import level_of
from controlplane.adapters.clusters.kubernetes.launching import Launcher, tolerating
from controlplane.adapters.clusters.kubernetes.logs import (
    NOTHING,
    continued_by,
    read_log,
    whole_log,
)
from controlplane.adapters.clusters.kubernetes.observing import (
    Found,
    all_there,
    doubtful,
    fenced,
    is_genuine,
    last_words,
    log_key,
    observed,
    places_of,
    pod_path,
)
from controlplane.adapters.clusters.kubernetes.profiles import Profile
from controlplane.adapters.clusters.kubernetes.watching import Watcher
from controlplane.adapters.clusters.refusals import NAME
from controlplane.domain.common.resources import Bytes
from controlplane.ports import registry
from controlplane.ports.clusters import (
    Check,
    ClusterError,
    ClusterEvent,
    ClusterObject,
    Endpoint,
    LogChunk,
    NodeView,
    ObservedLaunch,
    ObservedNode,
)
from controlplane.ports.diagnoses import Diagnosis
from controlplane.ports.launches import Launch

#: The secret of a Launch that its engine demands from callers.
ENGINE_KEY = "NINEFOLD_ENGINE_KEY"
#: Most names that a list is asked for by a selector, which is part of the address.
_NAMES_IN_SELECTOR = 40
#: Launches, and pods of one, that are asked for one by one: a list makes the server read every pod.
_NAMES_BY_THEMSELVES, _PODS_BY_THEMSELVES = 4, 8
#: Replicas whose logs a record has room for.
_LOGS_SAVED = 8


class KubernetesCluster:
    """Implements ``controlplane.ports.clusters.Cluster`` on one Kubernetes, every replica pinned to its node.

    ``installation`` marks what is ours there; the options are those of ``Profile``. With ``in_cluster`` the
    account of the pod that this process runs in is used instead of a kubeconfig.
    """

    runs_images = True

    def __init__(
        self,
        *,
        installation: str,
        kubeconfig: str = "",
        in_cluster: bool = False,
        **options: Any,
    ) -> None:
        self.profile = Profile.read(options)
        self._in_cluster = in_cluster
        self.installation = installation
        self.api = Api(
            access.in_cluster(os.environ) if in_cluster else access.from_kubeconfig(kubeconfig)
        )
        #: Launch → its namespace, as far as this process has seen it.
        self._spaces: dict[str, str] = {}
        self._launcher = Launcher(
            self.api, profile=self.profile, installation=self.installation, find=self._find
        )

    def location(self) -> Mapping[str, str]:
        return {
            "in_cluster": "true" if self._in_cluster else "false",
            "kubeconfig": self.api.access.server,
            "namespace": self.profile.namespace,
        }

    def inventory(self) -> tuple[ObservedNode, ...]:
        pods = self.api.list(
            "/api/v1/pods",
            query={"fieldSelector": "status.phase!=Succeeded,status.phase!=Failed"},
        )
        nodes, holders = self._launcher.devices.inventory(self.api.list("/api/v1/nodes").items)
        return inventories.observed_nodes(
            nodes,
            (*pods.items, *holders),
            installation=self.installation,
            plugins=tuple(registry.chip_plugins().values()),
            cpu_cards=self.profile.cpu_cards,
            hypernodes=self._hypernodes(),
        )

    def _hypernodes(self) -> Sequence[Object]:
        """Volcano's picture of the network; nothing where it has none, or keeps it from us."""
        try:
            return self.api.list(topologies.HYPERNODES).items
        except ApiRefused:
            return ()

    def reconcile_isolation(self) -> None:
        for space in sorted(self._own_namespaces()):
            ours = names.selector(names.marks(installation=self.installation))
            pods = self.api.list(f"/api/v1/namespaces/{space}/pods", query={"labelSelector": ours})
            self._launcher.reconcile_namespace(space, level=level_of(pods.items))

    def isolation(self) -> str:
        return (
            "Each replica is a pod without root, privileges or a token of the cluster's API; "
            "teams have namespaces of their own"
        )

    def launch(self, launch: Launch) -> None:
        self._launcher.launch(launch)
        team = launch.labels.get("team", "")
        self._spaces[launch.name] = names.namespace_of(team, prefix=self.profile.namespace)

    def observe(self, names: Collection[str]) -> Mapping[str, ObservedLaunch]:
        return {name: found.launch for name, found in self._find(names).items()}

    def _find(self, wanted: Collection[str]) -> Mapping[str, Found]:
        """The named Launches that exist, by their pods first and by their records where pods are missing."""
        sought = sorted(name for name in set(wanted) if NAME.fullmatch(name))
        pods = self._pods(sought)
        found = {}
        for name in sought:
            record = self._record(name, pods.get(name, ()))
            if record is not None or name in pods:
                gone = self._gone(pods.get(name, ()))
                found[name] = observed(
                    name, pods.get(name, ()), record=record, gone=gone, at=_now()
                )
        return found

    def _pods(self, sought: Sequence[str]) -> Mapping[str, Sequence[Object]]:
        """By the Launch's name. A selector saves the server no reading: of many names, all are listed once."""
        if len(sought) <= _NAMES_BY_THEMSELVES:
            near = {name: self._by_name(name) for name in sought}
            if None not in near.values():
                return {name: pods for name, pods in near.items() if pods}
        which = f" in ({','.join(sought)})" if len(sought) <= _NAMES_IN_SELECTOR else ""
        listing = self.api.list("/api/v1/pods", query={"labelSelector": self._selector(which)})
        wanted = set(sought)
        pods: dict[str, list[Object]] = {}
        for pod in listing.items:
            if not is_genuine(pod, prefix=self.profile.namespace):
                continue
            if (name := pod["metadata"]["labels"][names.LAUNCH]) in wanted:
                pods.setdefault(name, []).append(pod)
                self._spaces[name] = pod["metadata"]["namespace"]
        return pods

    def _by_name(self, name: str) -> Sequence[Object] | None:
        """Its pods, each asked for by itself, which is cheap for the server; None where a list has to tell."""
        space = self._spaces.get(name)
        if space is None:
            return None
        record = self.api.found(f"/api/v1/namespaces/{space}/configmaps/{name}")
        places = places_of(record) if record is not None and self._is_ours(record) else ()
        if not 0 < len(places) <= _PODS_BY_THEMSELVES:
            return None
        paths = (
            f"/api/v1/namespaces/{space}/pods/{names.pod_name(name, role=role, index=index)}"
            for role, index in places
        )
        return [pod for pod in map(self.api.found, paths) if pod is not None]

    def _selector(self, which: str) -> str:
        ours = names.selector(names.marks(installation=self.installation))
        return f"{ours},{names.LAUNCH}{which}"

    def _record(self, name: str, pods: Sequence[Object]) -> Object | None:
        """The record, where the pods do not say everything."""
        if pods and all_there(pods):
            return None
        spaces = {pod["metadata"]["namespace"] for pod in pods} or self._own_namespaces()
        for space in sorted(spaces):
            record = self.api.found(f"/api/v1/namespaces/{space}/configmaps/{name}")
            if record is not None and self._is_ours(record):
                return record
        return None

    def _own_namespaces(self) -> set[str]:
        """Those that may hold work of ours: another installation with the same prefix may have made them."""
        query = {"labelSelector": names.selector({names.MANAGED_BY: names.PRODUCT})}
        found = {
            one["metadata"]["name"]
            for one in self.api.list("/api/v1/namespaces", query=query).items
        }
        return {name for name in found if name.startswith(f"{self.profile.namespace}-")}

    def _is_ours(self, thing: Object) -> bool:
        labels = thing["metadata"].get("labels") or {}
        return bool(labels.get(names.INSTALLATION) == self.installation)

    def _gone(self, pods: Sequence[Object]) -> frozenset[str]:
        """Nodes of those pods that are no more or fenced; asked only where a pod gives reason to doubt."""
        doubted = {pod["spec"]["nodeName"] for pod in pods if doubtful(pod, at=_now())}
        return frozenset(
            name for name in doubted if fenced(self.api.found(f"/api/v1/nodes/{name}"))
        )

    def names(self) -> frozenset[str]:
        ours = names.selector(names.marks(installation=self.installation))
        selector = {"labelSelector": f"{ours},{names.LAUNCH}"}
        every = {
            pod["metadata"]["labels"][names.LAUNCH]
            for pod in self.api.list("/api/v1/pods", query=selector).items
            if is_genuine(pod, prefix=self.profile.namespace)
        }
        for space in sorted(self._own_namespaces()):
            records = self.api.list(f"/api/v1/namespaces/{space}/configmaps", query=selector)
            every |= {record["metadata"]["labels"][names.LAUNCH] for record in records.items}
        return frozenset(every)

    def stop(self, name: str, *, grace: timedelta) -> None:
        found = self._find([name]).get(name)
        if found is None or found.launch.ended:
            return
        stop_by = _now() + grace
        if found.stop_by is None:
            # Before any pod: who comes after us makes no further ones.
            order = {
                "metadata": {"annotations": {names.STOP_BY: stop_by.isoformat()}},
                "binaryData": self._saved_logs(found),
            }
            tolerating(lambda: self.api.merge(_record_path(found), order))
        else:
            stop_by = found.stop_by
        for pod in found.pods:
            if not pod["metadata"].get("deletionTimestamp"):
                self._end(pod, stop_by=stop_by)

    def _end(self, pod: Object, *, stop_by: datetime) -> None:
        path = pod_path(pod)
        annotation = {"metadata": {"annotations": {names.STOP_BY: stop_by.isoformat()}}}
        tolerating(lambda: self.api.merge(path, annotation))
        # 0 would take the pod away without asking its node.
        seconds = max(1, ceil((stop_by - _now()).total_seconds()))
        self.api.delete(path, grace=seconds, uid=pod["metadata"]["uid"])

    def _saved_logs(self, found: Found) -> dict[str, str]:
        """Their logs until now, of as many replicas as an object has room for."""
        return {
            log_key(pod): b64encode(whole_log(self.api, pod_path(pod))).decode("ascii")
            for pod in found.pods[:_LOGS_SAVED]
        }

    def remove(self, name: str) -> None:
        found = self._find([name]).get(name)
        if found is None:
            return
        if not found.launch.ended:
            raise ClusterError(f"the launch {name} has not ended: stop it before removing it")
        self._launcher.withdraw(found.namespace, name, grace=0)
        self._spaces.pop(name, None)

    def footprints(self, names: Collection[str]) -> Mapping[str, Bytes]:
        """Nothing: the folders of a pod go with it, and what outlives it stays in the volume of the profile."""
        return dict.fromkeys(self._find(names), Bytes(0))

    def log(self, name: str, *, role: str, index: int, offset: int, limit: int) -> LogChunk:
        found = self._find([name]).get(name)
        pod = None if found is None else found.pod(role, index)
        if found is None or pod is None:
            return NOTHING
        replica = found.replica(role, index)
        return read_log(
            self.api,
            pod_path(pod),
            offset=offset,
            limit=limit,
            ended=replica.ended,
            rest=self._rest(found, pod) if replica.ended else b"",
        )

    def _rest(self, found: Found, pod: Object) -> bytes:
        """What is kept of a log whose container is no more."""
        record = self.api.found(_record_path(found)) or {}
        saved = b64decode((record.get("binaryData") or {}).get(log_key(pod), ""))
        return continued_by(saved, last_words(pod).encode())

    def endpoint(self, name: str, *, role: str, index: int, port: str) -> Endpoint | None:
        found = self._find([name]).get(name)
        pod = None if found is None else found.pod(role, index)
        number = None if found is None else found.ports.get(role, {}).get(port)
        if found is None or pod is None or number is None:
            return None
        host = pod["status"].get("podIP")
        if self.profile.reach == "node_port":
            host, number = self._node_port(pod, number)
        if not host or not number:
            return None
        shown = f"[{host}]" if ":" in host else host
        return Endpoint(url=f"http://{shown}:{number}", credential=self._credential(found))

    def _node_port(self, pod: Object, number: int) -> tuple[str, int]:
        """The address of the pod's node, and the port there that leads to it; empty where not known yet."""
        space, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
        service = self.api.found(f"/api/v1/namespaces/{space}/services/{name}") or {"spec": {}}
        opened = [
            each["nodePort"]
            for each in service["spec"].get("ports") or ()
            if each["port"] == number and each.get("nodePort")
        ]
        return str(pod["status"].get("hostIP") or ""), opened[0] if opened else 0

    def _credential(self, found: Found) -> str:
        path = f"/api/v1/namespaces/{found.namespace}/secrets/{found.launch.name}"
        return manifests.secret_value(self.api.found(path), ENGINE_KEY)

    def version(self) -> str:
        return str(self.api.get("/version")["gitVersion"])

    def checks(self) -> tuple[Check, ...]:
        return checks.connection_checks(
            self.api,
            installation=self.installation,
            prefix=self.profile.namespace,
            plugins=tuple(registry.chip_plugins().values()),
            cpu_cards=self.profile.cpu_cards,
            device_classes=self.profile.device_classes,
        )

    def objects(self, name: str) -> tuple[ClusterObject, ...]:
        found = self._find([name]).get(name)
        if found is None:
            return ()
        templates = self._launcher.devices.templates(found.namespace, name)
        return (
            *inspection.objects(
                self.api, name=name, namespace=found.namespace, installation=self.installation
            ),
            *(inspection.shown(each, kind="ResourceClaimTemplate") for each in templates),
        )

    def events(self, name: str) -> tuple[ClusterEvent, ...]:
        found = self._find([name]).get(name)
        if found is None:
            return ()
        return inspection.events(
            self.api, name=name, namespace=found.namespace, installation=self.installation
        )

    def node(self, name: str) -> NodeView | None:
        return inspection.node_view(self.api, name=name, installation=self.installation)

    def diagnose(self) -> Diagnosis:
        return diagnosing.diagnosis(self.api, at=_now())

    def mark(self, node: str, reason: str) -> bool:
        return marks.mark(self.api, node, installation=self.installation, reason=reason)

    def unmark(self, node: str) -> None:
        marks.unmark(self.api, node, installation=self.installation)

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


def _record_path(found: Found) -> str:
    return f"/api/v1/namespaces/{found.namespace}/configmaps/{found.launch.name}"


def _now() -> datetime:
    return datetime.now(UTC)
