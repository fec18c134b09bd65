"""Asks a cluster for all that says what is wrong there: nodes, events about them, ConfigMaps of MindCluster.

One list, or a handful of objects, of each kind whatever the number of nodes. What may not be read is said; that a
cluster does not answer is an error, because then it says nothing of any card.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from itertools import count
from typing import Any

from controlplane.adapters.clusters.kubernetes import mindcluster, node_conditions
from controlplane.adapters.clusters.kubernetes.api import ApiRefused, KubernetesApi
from controlplane.adapters.clusters.kubernetes.signal_tables import signal_table
from controlplane.domain.health.faults import Origin
from controlplane.ports.clusters import ClusterDiagnosis, ClusterSignal, UnreadableSource

Object = Mapping[str, Any]


def diagnose(api: KubernetesApi, *, at: datetime) -> ClusterDiagnosis:
    """:raises ClusterUnavailable: if it does not answer, or keeps its nodes from us."""
    return _Diagnoser(api, at=at).diagnose()


class _Diagnoser:
    def __init__(self, api: KubernetesApi, *, at: datetime) -> None:
        self._api = api
        self._at = at
        self._signals: list[ClusterSignal] = []
        self._unreadable: list[UnreadableSource] = []

    def diagnose(self) -> ClusterDiagnosis:
        nodes = self._api.list("/api/v1/nodes")
        for node in nodes:
            self._signals += node_conditions.node_condition_signals(node)
            self._signals += node_conditions.nvsentinel_condition_signals(node)
        events = self._read_origin(Origin.EVENT, self._events_of_nodes)
        self._signals += node_conditions.node_event_signals(events, at=self._at)
        self._signals += node_conditions.nvsentinel_event_signals(events, at=self._at)
        if any(map(_may_have_mindcluster, nodes)):
            self._read_mindcluster()
        known = {str(node["metadata"]["name"]) for node in nodes}
        return ClusterDiagnosis(
            signals=tuple(signal for signal in self._signals if signal.node in known),
            unreadable=tuple(self._unreadable),
        )

    def _read_origin(
        self, origin: Origin, fetch: Callable[[], Sequence[Object]]
    ) -> Sequence[Object]:
        try:
            return fetch()
        except ApiRefused as refusal:
            self._unreadable.append(UnreadableSource(origin=origin, reason=str(refusal)))
            return ()

    def _events_of_nodes(self) -> Sequence[Object]:
        return self._api.list(node_conditions.EVENTS, query=node_conditions.EVENTS_QUERY)

    def _read_mindcluster(self) -> None:
        found = mindcluster.MindClusterSignals()
        maps = self._read_origin(Origin.MINDCLUSTER, self._read_aggregated_config_maps)
        if not maps:
            maps = self._read_origin(Origin.MINDCLUSTER, self._single_maps)
        for each in maps:
            mindcluster.read_config_map(each, into=found)
        if not maps:
            reason = "there is no ConfigMap of MindCluster, which says of each card how it is"
            self._unreadable.append(UnreadableSource(origin=Origin.MINDCLUSTER, reason=reason))
        self._signals += found.signals
        self._unreadable += found.unreadable
        events = self._read_origin(Origin.EVENT, self._events_of_mindcluster)
        self._signals += mindcluster.mindcluster_event_signals(events, at=self._at)

    def _read_aggregated_config_maps(self) -> Sequence[Object]:
        """Those that clusterd writes; none where it does not run."""
        own = signal_table("mindcluster")
        path = f"/api/v1/namespaces/{own['namespace']}/configmaps"
        found = []
        for pattern in own["aggregates"]:
            for part in count():
                config_map = self._api.found(f"{path}/{pattern.format(part=part)}")
                if config_map is None:
                    break
                found.append(config_map)
        if found and (rest := self._api.found(f"{path}/{own['aggregate']}")) is not None:
            found.append(rest)
        return found

    def _single_maps(self) -> Sequence[Object]:
        """Those of the device plug-in and of noded, one for each node."""
        own = signal_table("mindcluster")
        found: list[Object] = []
        for space in (own["own_namespace"], own["namespace"]):
            query = {"labelSelector": own["own_label"]}
            path = f"/api/v1/namespaces/{space}/configmaps"
            found += filter(mindcluster.is_about_nodes, self._api.list(path, query=query))
        return found

    def _events_of_mindcluster(self) -> Sequence[Object]:
        path = f"/api/v1/namespaces/{signal_table('mindcluster')['own_namespace']}/events"
        return self._api.list(path, query={"fieldSelector": "involvedObject.kind=Pod"})


def _may_have_mindcluster(node: Object) -> bool:
    capacity = (node.get("status") or {}).get("capacity") or {}
    return any(re.fullmatch(signal_table("mindcluster")["resource"], name) for name in capacity)
