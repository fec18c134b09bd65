"""Read everything that reports faults of a cluster: nodes, events about them, ConfigMaps of MindCluster.

One list, or a handful of objects, of each kind whatever the number of nodes. Unreadable sources are reported; a
cluster that does not respond is an error, because it reports nothing about any card. MindCluster uses ConfigMaps
and events::

    cluster-info-device-0     {"mindx-dl-deviceinfo-<node>": {"DeviceList": {…}}, …}     of 1,000 nodes each
    cluster-info-switch-0     {"mindx-dl-switchinfo-<node>": {"FaultLevel": …}, …}       of 2,000 nodes each
    cluster-info-node-cm      {"mindx-dl-nodeinfo-<node>": {"FaultDevList": […]}, …}
    mindx-dl-deviceinfo-<node>  DeviceInfoCfg  {"DeviceInfo": {"DeviceList": {…}}}       where there is no clusterd

Programs of several releases write them, so every field is validated: unreadable parts are reported as such, and
their earlier faults stay open. The fault level in them takes precedence over our table of codes, because the
cluster's administrator may have changed it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count, takewhile
from typing import Any, Final

from controlplane.adapters.clusters.kubernetes import node_conditions
from controlplane.adapters.clusters.kubernetes.api import (
    ApiRefused,
    KubernetesApi,
    Object,
    nested_field,
    object_name,
)
from controlplane.adapters.clusters.kubernetes.node_conditions import (
    fault_levels_by_signal,
    signal_table,
)
from controlplane.domain.common.reasons import Reason, truncate_reason
from controlplane.domain.health.faults import FaultLevel, SignalOrigin
from controlplane.ports.clusters import ClusterDiagnosis, ClusterSignal, UnreadableSource

#: Where events about nodes are, which have no namespace.
_NODE_EVENTS: Final = "/api/v1/namespaces/default/events"
#: ``Ascend910-3``, ``npu-3``.
_CARD: Final = re.compile(r"[A-Za-z][\w.]*-(\d{1,4})")
_FAULTS: Final = "-Fault"
#: The one that is recommended first.
_LEVEL_KEYS: Final = ("fault_handling", "fault_level", "large_model_fault_level")
#: The message format of the device plug-in's events, which are about its own pod.
_EVENT: Final = re.compile(
    r"nodeName:(?P<node>[\w.-]+), assertion:(?P<assertion>\w+), cardID:(?P<card>\d+), "
    r"deviceID:(?P<device>\d+), faultCodes:(?P<code>\w+)"
)
#: Beyond it an instant is counted in milliseconds.
_SECONDS: Final = 100_000_000_000
_SHOWN: Final = 200


def diagnose_cluster(api: KubernetesApi, *, at: datetime) -> ClusterDiagnosis:
    """:raises ClusterUnavailable: if it does not respond, or its nodes may not be read."""
    nodes = api.list("/api/v1/nodes")
    found = SignalCollector()
    for node in nodes:
        found.signals += node_conditions.node_condition_signals(node)
        found.signals += node_conditions.nvsentinel_condition_signals(node)
    with found.reading(SignalOrigin.EVENT):
        events = api.list(_NODE_EVENTS, query={"fieldSelector": "involvedObject.kind=Node"})
        found.signals += node_conditions.node_event_signals(events, at=at)
    resource = signal_table("mindcluster")["resource"]
    if any(
        re.fullmatch(resource, name)
        for node in nodes
        for name in nested_field(node, "status", "capacity")
    ):
        _read_mindcluster_faults(api, at=at, into=found)
    known = set(map(object_name, nodes))
    return ClusterDiagnosis(
        signals=tuple(signal for signal in found.signals if signal.node in known),
        unreadable=tuple(found.unreadable),
    )


@dataclass(slots=True)
class SignalCollector:
    """Signals, and what could not be read, collected one source after the other."""

    signals: list[ClusterSignal] = field(default_factory=list)
    unreadable: list[UnreadableSource] = field(default_factory=list)

    @contextmanager
    def reading(self, origin: SignalOrigin) -> Iterator[None]:
        """A source that we may not read ends the block, and is noted."""
        try:
            yield
        except ApiRefused as refusal:
            self.unreadable.append(UnreadableSource(origin=origin, reason=str(refusal)))

    def parse_json(self, text: str, *, key: str, name: str, node: str) -> Any:
        """The value under a key of a ConfigMap; None, and noted as unreadable, if it is not valid JSON."""
        try:
            return json.loads(text)
        except (TypeError, ValueError, RecursionError) as error:
            reason = Reason(
                "node.signal.invalid_json",
                "{key} is not valid JSON: {detail}",
                key=key,
                detail=str(error),
            )
            self.add_unreadable(name, node, reason)
            return None

    def add_unreadable(self, name: str, node: str, reason: str) -> None:
        """Note a ConfigMap, or its part about a node, that cannot be read."""
        reason = truncate_reason(
            Reason(
                "node.signal.config_map_unreadable",
                "the MindCluster ConfigMap {config_map} cannot be read: {reason}",
                config_map=name,
                reason=reason,
            ),
            _SHOWN,
        )
        unread = UnreadableSource(origin=SignalOrigin.MINDCLUSTER, node=node, reason=reason)
        self.unreadable.append(unread)
        if node:
            code = "unreadable ConfigMap"
            self.signals.append(
                _build_mindcluster_signal(node, code=code, level=FaultLevel.NOTE, message=reason)
            )


def _read_mindcluster_faults(api: KubernetesApi, *, at: datetime, into: SignalCollector) -> None:
    maps: Sequence[Object] = ()
    with into.reading(SignalOrigin.MINDCLUSTER):
        maps = _list_clusterd_config_maps(api)
    if not maps:
        with into.reading(SignalOrigin.MINDCLUSTER):
            maps = _list_config_maps_per_node(api)
    for each in maps:
        read_config_map(each, into=into)
    if not maps:
        reason = Reason(
            "node.signal.config_map_missing",
            "there is no MindCluster ConfigMap with the state of the cards",
        )
        into.unreadable.append(UnreadableSource(origin=SignalOrigin.MINDCLUSTER, reason=reason))
    with into.reading(SignalOrigin.EVENT):
        path = f"/api/v1/namespaces/{signal_table('mindcluster')['own_namespace']}/events"
        events = api.list(path, query={"fieldSelector": "involvedObject.kind=Pod"})
        into.signals += mindcluster_event_signals(events, at=at)


def _list_clusterd_config_maps(api: KubernetesApi) -> Sequence[Object]:
    """The ConfigMaps that clusterd writes; empty where it does not run."""
    own = signal_table("mindcluster")
    path = f"/api/v1/namespaces/{own['namespace']}/configmaps"
    found: list[Object | None] = []
    for pattern in own["aggregates"]:
        parts = (api.found(f"{path}/{pattern.format(part=part)}") for part in count())
        found += takewhile(lambda part: part is not None, parts)
    if found:
        found.append(api.found(f"{path}/{own['aggregate']}"))
    return [each for each in found if each is not None]


def _list_config_maps_per_node(api: KubernetesApi) -> Sequence[Object]:
    """Those of the device plug-in and of noded, one for each node."""
    own, found = signal_table("mindcluster"), list[Object]()
    for space in (own["own_namespace"], own["namespace"]):
        path = f"/api/v1/namespaces/{space}/configmaps"
        found += api.list(path, query={"labelSelector": own["own_label"]})
    return [each for each in found if _node_of_config_map(object_name(each))]


def mindcluster_event_signals(events: Iterable[Object], *, at: datetime) -> Iterator[ClusterSignal]:
    """Recent events of cards.

    They name a board and a chip on it, which is not the index in the node: they become faults of the node, and
    the ConfigMaps name the card.
    """
    for _kind, event in node_conditions.recent_events(events, at=at):
        if found := _EVENT.search(event.message):
            yield _build_mindcluster_signal(
                found["node"],
                origin=SignalOrigin.EVENT,
                code=f"{found['code']} of {found['card']}.{found['device']}",
                level=FaultLevel.NOTE,
                message=event.message,
                since=min(event.at, at),
                active=found["assertion"] != "Recovery",
            )


def read_config_map(config_map: Object, *, into: SignalCollector) -> None:
    """Faults of one ConfigMap, of all nodes together or of one."""
    name = object_name(config_map)
    owner = _node_of_config_map(name)
    for key, text in sorted(nested_field(config_map, "data").items()):
        if owner and key == "ManuallySeparateNPU":
            into.signals += (
                _build_mindcluster_signal(
                    owner,
                    index=index,
                    code=key,
                    level=FaultLevel.ISOLATE,
                    message=Reason(
                        "node.signal.manually_separated",
                        "the card is isolated by MindCluster until an administrator releases it",
                    ),
                )
                for index in _parse_card_indices(str(text))
            )
            continue
        if not str(text).lstrip().startswith(("{", "[")):
            # Some keys hold plain words; what should be JSON begins like it.
            continue
        content = into.parse_json(text, key=key, name=name, node=owner)
        if not isinstance(content, Mapping):
            continue
        if owner:
            _read_node_entry(owner, content, where=name, into=into)
            continue
        for entry, values in content.items():
            if node := _node_of_config_map(str(entry)):
                _read_node_entry(node, values, where=f"{name}, {entry}", into=into)


def _node_of_config_map(name: str) -> str:
    """The node that an entry is about; empty if it is about none."""
    prefixes = signal_table("mindcluster")["prefixes"]
    prefix = next((each for each in prefixes if name.startswith(each)), name)
    return name.removeprefix(prefix)


def _read_node_entry(node: str, values: object, *, where: str, into: SignalCollector) -> None:
    """The entry of one node: its cards, switches and other parts."""
    inner = values
    if isinstance(values, Mapping):
        inner = next((values[key] for key in ("DeviceInfo", "NodeInfo") if key in values), values)
    if not isinstance(inner, Mapping):
        reason = Reason(
            "node.signal.not_an_object",
            "the value must be a JSON object, got {type}",
            type=type(inner).__name__,
        )
        into.add_unreadable(where, node, reason)
        return
    if isinstance(cards := inner.get("DeviceList"), Mapping):
        _read_cards(node, cards, where=where, into=into)
    if "FaultTimeAndLevelMap" in inner or ("FaultLevel" in inner and "NodeStatus" in inner):
        into.signals += _switch_signals(node, inner)
    if isinstance(parts := inner.get("FaultDevList"), list):
        into.signals += _node_part_signals(node, parts)


def _read_cards(node: str, lists: Object, *, where: str, into: SignalCollector) -> None:
    found: list[ClusterSignal] = []
    for key, text in sorted(lists.items()):
        if not key.endswith(_FAULTS) or not text:
            continue
        faults = text
        if isinstance(text, str):
            faults = into.parse_json(text, key=key, name=where, node=node)
        for fault in faults if isinstance(faults, list) else ():
            if isinstance(fault, Mapping):
                found += _fault_signals(node, fault)
    # Lists in which a card may be because of a fault; a reset in progress is reported separately.
    faulty = {signal.index for signal in found if signal.level is not FaultLevel.NOTE}
    for kind, level in signal_table("mindcluster", "lists").items():
        explained = faulty if kind in ("Unhealthy", "NetworkUnhealthy") else ()
        found += [
            _build_mindcluster_signal(
                node,
                index=index,
                code=kind,
                level=FaultLevel[level],
                message=Reason(
                    "node.signal.listed",
                    "the MindCluster ConfigMap lists the card in {list} without a fault",
                    list=kind,
                ),
            )
            for key, names in lists.items()
            if key.endswith(f"-{kind}") and isinstance(names, str)
            for index in _parse_card_indices(names)
            if index not in explained
        ]
    into.signals += found


def _fault_signals(node: str, fault: Object) -> Iterator[ClusterSignal]:
    """One signal for each code; of the node itself where no card is named."""
    index = next(iter(_parse_card_indices(str(fault.get("npu_name") or ""))), None)
    kind = str(fault.get("fault_type") or "")
    by_code = fault.get("fault_time_and_level_map")
    if not isinstance(by_code, Mapping) or not by_code:
        codes = str(fault.get("fault_code") or "").split(",")
        by_code = {code.strip(): {} for code in codes if code.strip()} or {kind or "unnamed": {}}
    word = next((str(fault[each]) for each in _LEVEL_KEYS if fault.get(each)), "")
    return _signals_by_fault_code(node, by_code, index=index, what=kind, word=word)


def _switch_signals(node: str, values: Object) -> Iterator[ClusterSignal]:
    """Faults of the switches that link its cards: of the node, for each of its cards needs them."""
    whole = str(values.get("FaultLevel") or "")
    by_code = values.get("FaultTimeAndLevelMap")
    if isinstance(by_code, str):
        try:
            by_code = json.loads(by_code)
        except ValueError:
            by_code = None
    if not isinstance(by_code, Mapping) or not by_code:
        by_code = (
            {"switch": {}}
            if fault_levels_by_signal("mindcluster", "levels").get(whole, 1) > 1
            else {}
        )
    return _signals_by_fault_code(node, by_code, index=None, what="switch", word=whole)


def _signals_by_fault_code(
    node: str, by_code: Object, *, index: int | None, what: str, word: str
) -> Iterator[ClusterSignal]:
    """:param word: MindCluster's word for the level of codes that have none of their own."""
    for code, values in by_code.items():
        own = values if isinstance(values, Mapping) else {}
        level = str(own.get("fault_level") or word)
        yield _build_mindcluster_signal(
            node,
            index=index,
            code=str(code),
            level=fault_levels_by_signal("mindcluster", "levels").get(level),
            message=f"{what} {level}".strip(),
            since=_parse_unix_timestamp(own.get("fault_time")),
        )


def _node_part_signals(node: str, parts: Iterable[object]) -> Iterator[ClusterSignal]:
    for part in parts:
        if not isinstance(part, Mapping):
            continue
        codes = part.get("FaultCode")
        level = str(part.get("FaultLevel") or "")
        what = f"{part.get('DeviceType', 'part')} {part.get('DeviceId', '')}".strip()
        for code in codes if isinstance(codes, list) else [codes or "unnamed"]:
            yield _build_mindcluster_signal(
                node,
                code=str(code),
                level=fault_levels_by_signal("mindcluster", "levels").get(level),
                message=f"{what}: {level}" if level else what,
            )


def _parse_card_indices(names: str) -> list[int]:
    """``Ascend910-0,Ascend910-3`` → [0, 3]."""
    found = (_CARD.fullmatch(name.strip()) for name in names.split(","))
    return [int(each[1]) for each in found if each is not None]


def _build_mindcluster_signal(
    node: str,
    *,
    code: str,
    message: str,
    origin: SignalOrigin = SignalOrigin.MINDCLUSTER,
    **others: Any,
) -> ClusterSignal:
    return ClusterSignal(
        node=node,
        origin=origin,
        code=code[:_SHOWN],
        vendor=str(signal_table("mindcluster")["vendor"]),
        message=truncate_reason(message, _SHOWN),
        **others,
    )


def _parse_unix_timestamp(stamp: object) -> datetime | None:
    """Of a count of seconds or milliseconds; None of what is neither."""
    if not isinstance(stamp, int | float) or isinstance(stamp, bool) or not 0 < stamp < 1e14:
        return None
    seconds = stamp / 1000 if stamp > _SECONDS else stamp
    return datetime.fromtimestamp(seconds, tz=UTC)
