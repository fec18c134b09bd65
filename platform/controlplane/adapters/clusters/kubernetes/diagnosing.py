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

from controlplane.adapters.clusters.kubernetes import conditions, mindcluster, nvsentinel
from controlplane.adapters.clusters.kubernetes.api import Api, ApiRefused
from controlplane.adapters.clusters.kubernetes.sign_tables import table
from controlplane.domain.health.signals import Origin
from controlplane.ports.diagnoses import Diagnosis, Sign, Unread

Object = Mapping[str, Any]


def diagnosis(api: Api, *, at: datetime) -> Diagnosis:
    """:raises ClusterUnavailable: if it does not answer, or keeps its nodes from us."""
    return _Look(api, at=at).diagnosis()


class _Look:
    def __init__(self, api: Api, *, at: datetime) -> None:
        self._api = api
        self._at = at
        self._signs: list[Sign] = []
        self._unread: list[Unread] = []

    def diagnosis(self) -> Diagnosis:
        nodes = self._api.list("/api/v1/nodes").items
        for node in nodes:
            self._signs += conditions.node_signs(node)
            self._signs += nvsentinel.node_signs(node)
        events = self._read(Origin.EVENT, self._events_of_nodes)
        self._signs += conditions.event_signs(events, at=self._at)
        self._signs += nvsentinel.event_signs(events, at=self._at)
        if any(map(_may_have_mindcluster, nodes)):
            self._mindcluster()
        known = {str(node["metadata"]["name"]) for node in nodes}
        return Diagnosis(
            signs=tuple(sign for sign in self._signs if sign.node in known),
            unread=tuple(self._unread),
        )

    def _read(self, origin: Origin, ask: Callable[[], Sequence[Object]]) -> Sequence[Object]:
        try:
            return ask()
        except ApiRefused as refusal:
            self._unread.append(Unread(origin=origin, reason=str(refusal)))
            return ()

    def _events_of_nodes(self) -> Sequence[Object]:
        return self._api.list(conditions.EVENTS, query=conditions.EVENTS_QUERY).items

    def _mindcluster(self) -> None:
        told = mindcluster.Told()
        maps = self._read(Origin.MINDCLUSTER, self._aggregates)
        if not maps:
            maps = self._read(Origin.MINDCLUSTER, self._single_maps)
        for each in maps:
            mindcluster.config_map_told(each, into=told)
        if not maps:
            reason = "there is no ConfigMap of MindCluster, which says of each card how it is"
            self._unread.append(Unread(origin=Origin.MINDCLUSTER, reason=reason))
        self._signs += told.signs
        self._unread += told.unread
        events = self._read(Origin.EVENT, self._events_of_mindcluster)
        self._signs += mindcluster.event_signs(events, at=self._at)

    def _aggregates(self) -> Sequence[Object]:
        """Those that clusterd writes; none where it does not run."""
        own = table("mindcluster")
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
        own = table("mindcluster")
        found: list[Object] = []
        for space in (own["own_namespace"], own["namespace"]):
            query = {"labelSelector": own["own_label"]}
            path = f"/api/v1/namespaces/{space}/configmaps"
            found += filter(mindcluster.is_about_nodes, self._api.list(path, query=query).items)
        return found

    def _events_of_mindcluster(self) -> Sequence[Object]:
        path = f"/api/v1/namespaces/{table('mindcluster')['own_namespace']}/events"
        return self._api.list(path, query={"fieldSelector": "involvedObject.kind=Pod"}).items


def _may_have_mindcluster(node: Object) -> bool:
    capacity = (node.get("status") or {}).get("capacity") or {}
    return any(re.fullmatch(table("mindcluster")["resource"], name) for name in capacity)
