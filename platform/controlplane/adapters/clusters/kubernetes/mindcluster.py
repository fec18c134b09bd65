"""What MindCluster says of the cards of its nodes, in ConfigMaps and in events.

::

    cluster-info-device-0     {"mindx-dl-deviceinfo-<node>": {"DeviceList": {…}}, …}     of 1,000 nodes each
    cluster-info-switch-0     {"mindx-dl-switchinfo-<node>": {"FaultLevel": …}, …}       of 2,000 nodes each
    cluster-info-node-cm      {"mindx-dl-nodeinfo-<node>": {"FaultDevList": […]}, …}
    mindx-dl-deviceinfo-<node>  DeviceInfoCfg  {"DeviceInfo": {"DeviceList": {…}}}       where there is no clusterd

Programs of several releases write them, so nothing is taken for granted: what cannot be read is said to be unread,
and what stood of it before stays. Its words for what has to be done go before our table of codes, because its
administrator may have changed them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from controlplane.adapters.clusters.kubernetes.inspection import cluster_event
from controlplane.adapters.clusters.kubernetes.node_conditions import EVENT_MAX_AGE
from controlplane.adapters.clusters.kubernetes.signal_tables import signal_levels, signal_table
from controlplane.domain.health.faults import FaultLevel, Origin
from controlplane.ports.clusters import ClusterSignal, UnreadableSource

Object = Mapping[str, Any]

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


@dataclass(slots=True)
class MindClusterSignals:
    """Faults from the ConfigMaps, collected one by one."""

    signals: list[ClusterSignal] = field(default_factory=list)
    unreadable: list[UnreadableSource] = field(default_factory=list)


def read_config_map(config_map: Object, *, into: MindClusterSignals) -> None:
    """Faults of one ConfigMap, of all nodes together or of one."""
    name = str(config_map["metadata"]["name"])
    owner = _node_of_config_map(name)
    for key, text in sorted((config_map.get("data") or {}).items()):
        if owner and key == "ManuallySeparateNPU":
            into.signals += _separated_card_signals(owner, str(text))
            continue
        try:
            content = json.loads(text)
        except (TypeError, ValueError, RecursionError) as error:
            # Some keys hold plain words; what should be JSON begins like it.
            if str(text).lstrip().startswith(("{", "[")):
                _add_unreadable(name, owner, f"{key} is not JSON: {error}", into=into)
            continue
        if owner:
            if isinstance(content, Mapping):
                _add_node_entry(owner, content, where=name, into=into)
            continue
        for entry, values in content.items() if isinstance(content, Mapping) else ():
            if node := _node_of_config_map(str(entry)):
                _add_node_entry(node, values, where=f"{name}, {entry}", into=into)


def mindcluster_event_signals(events: Iterable[Object], *, at: datetime) -> Iterator[ClusterSignal]:
    """What happened to a card, or is over, as far as it is news.

    They name a board and a chip on it, which is not its place in the node: they are notes of the node, and which
    card it is the ConfigMaps say.
    """
    for each in events:
        event = cluster_event(each)
        found = _EVENT.search(event.message)
        if found is not None and event.at > at - EVENT_MAX_AGE:
            yield ClusterSignal(
                node=found["node"],
                origin=Origin.EVENT,
                code=f"{found['code']} of {found['card']}.{found['device']}",
                level=FaultLevel.NOTE,
                vendor=str(signal_table("mindcluster")["vendor"]),
                message=event.message[:_SHOWN],
                since=min(event.at, at),
                active=found["assertion"] != "Recovery",
            )


def is_about_nodes(config_map: Object) -> bool:
    """Whether it is one of the device plug-in's or noded's own."""
    return bool(_node_of_config_map(str(config_map["metadata"]["name"])))


def _node_of_config_map(name: str) -> str:
    """The node that an entry is about; empty if it is about none."""
    for prefix in signal_table("mindcluster")["prefixes"]:
        if name.startswith(prefix):
            return name.removeprefix(prefix)
    return ""


def _add_unreadable(name: str, node: str, reason: str, *, into: MindClusterSignals) -> None:
    reason = f"the ConfigMap {name} of MindCluster cannot be read: {reason}"[:_SHOWN]
    into.unreadable.append(UnreadableSource(origin=Origin.MINDCLUSTER, node=node, reason=reason))
    if node:
        into.signals.append(
            _mindcluster_signal(
                node, None, code="unreadable ConfigMap", level=FaultLevel.NOTE, message=reason
            )
        )


def _add_node_entry(node: str, values: object, *, where: str, into: MindClusterSignals) -> None:
    """Of one node: of its cards, its switches or its other parts, as far as it says something of each."""
    if not isinstance(values, Mapping):
        _add_unreadable(where, node, f"it is {type(values).__name__}, not an object", into=into)
        return
    inner = next((values[key] for key in ("DeviceInfo", "NodeInfo") if key in values), values)
    if not isinstance(inner, Mapping):
        _add_unreadable(where, node, "it holds no object", into=into)
        return
    if isinstance(cards := inner.get("DeviceList"), Mapping):
        _add_card_faults(node, cards, where=where, into=into)
    if "FaultTimeAndLevelMap" in inner or ("FaultLevel" in inner and "NodeStatus" in inner):
        into.signals += _switch_signals(node, inner)
    if isinstance(parts := inner.get("FaultDevList"), list):
        into.signals += _node_part_signals(node, parts)


# -- Cards --


def _add_card_faults(node: str, lists: Object, *, where: str, into: MindClusterSignals) -> None:
    found: list[ClusterSignal] = []
    for key, text in sorted(lists.items()):
        if not key.endswith(_FAULTS) or not text:
            continue
        try:
            faults = json.loads(text) if isinstance(text, str) else text
        except (ValueError, RecursionError) as error:
            _add_unreadable(where, node, f"{key} is not JSON: {error}", into=into)
            continue
        for fault in faults if isinstance(faults, list) else ():
            if isinstance(fault, Mapping):
                found += _fault_signals(node, fault)
    explained = {(signal.index, kind) for signal in found for kind in _lists_explained_by(signal)}
    for kind, level in signal_table("mindcluster", "lists").items():
        for key, names in lists.items():
            if key.endswith(f"-{kind}") and isinstance(names, str):
                found += (
                    _mindcluster_signal(
                        node,
                        index,
                        code=kind,
                        level=FaultLevel[level],
                        message=f"listed as {kind} without a fault",
                    )
                    for index in _parse_card_indices(names)
                    if (index, kind) not in explained
                )
    into.signals += found


def _lists_explained_by(signal: ClusterSignal) -> tuple[str, ...]:
    """Lists in which a card may be because of that fault; a reset in progress is reported separately."""
    return () if signal.level is FaultLevel.NOTE else ("Unhealthy", "NetworkUnhealthy")


def _fault_signals(node: str, fault: Object) -> Iterator[ClusterSignal]:
    """One signal for each code; of the node itself where no card is named."""
    index = next(iter(_parse_card_indices(str(fault.get("npu_name") or ""))), None)
    kind = str(fault.get("fault_type") or "")
    by_code = fault.get("fault_time_and_level_map")
    if not isinstance(by_code, Mapping) or not by_code:
        codes = str(fault.get("fault_code") or "").split(",")
        by_code = {code.strip(): {} for code in codes if code.strip()} or {kind or "unnamed": {}}
    word = next((str(fault[each]) for each in _LEVEL_KEYS if fault.get(each)), "")
    for code, values in by_code.items():
        own = values if isinstance(values, Mapping) else {}
        level = str(own.get("fault_level") or word)
        yield _mindcluster_signal(
            node,
            index,
            code=str(code),
            level=signal_levels("mindcluster", "levels").get(level),
            message=f"{kind} {level}".strip(),
            since=_parse_instant(own.get("fault_time")),
        )


def _separated_card_signals(node: str, names: str) -> Iterator[ClusterSignal]:
    """Cards that MindCluster keeps apart until a person lets them go."""
    for index in _parse_card_indices(names):
        yield _mindcluster_signal(
            node,
            index,
            code="ManuallySeparateNPU",
            level=FaultLevel.ISOLATE,
            message="kept apart by MindCluster until a person lets it go",
        )


def _parse_card_indices(names: str) -> list[int]:
    """``Ascend910-0,Ascend910-3`` → [0, 3]."""
    found = (_CARD.fullmatch(name.strip()) for name in names.split(","))
    return [int(each[1]) for each in found if each is not None]


# -- The node's other parts --


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
        by_code = {"switch": {}} if signal_levels("mindcluster", "levels").get(whole, 1) > 1 else {}
    for code, fault_values in by_code.items():
        own = fault_values if isinstance(fault_values, Mapping) else {}
        level = str(own.get("fault_level") or whole)
        yield _mindcluster_signal(
            node,
            None,
            code=str(code),
            level=signal_levels("mindcluster", "levels").get(level),
            message=f"switch {level}".strip(),
            since=_parse_instant(own.get("fault_time")),
        )


def _node_part_signals(node: str, parts: Iterable[object]) -> Iterator[ClusterSignal]:
    for part in parts:
        if not isinstance(part, Mapping):
            continue
        codes = part.get("FaultCode")
        level = str(part.get("FaultLevel") or "")
        what = f"{part.get('DeviceType', 'part')} {part.get('DeviceId', '')}".strip()
        for code in codes if isinstance(codes, list) else [codes or "unnamed"]:
            yield _mindcluster_signal(
                node,
                None,
                code=str(code),
                level=signal_levels("mindcluster", "levels").get(level),
                message=f"{what}: {level}" if level else what,
            )


def _mindcluster_signal(
    node: str,
    index: int | None,
    *,
    code: str,
    level: FaultLevel | None,
    message: str,
    since: datetime | None = None,
) -> ClusterSignal:
    return ClusterSignal(
        node=node,
        index=index,
        origin=Origin.MINDCLUSTER,
        code=code[:_SHOWN],
        level=level,
        vendor=str(signal_table("mindcluster")["vendor"]),
        message=message[:_SHOWN],
        since=since,
    )


def _parse_instant(stamp: object) -> datetime | None:
    """Of a count of seconds or milliseconds; None of what is neither."""
    if not isinstance(stamp, int | float) or isinstance(stamp, bool) or not 0 < stamp < 1e14:
        return None
    seconds = stamp / 1000 if stamp > _SECONDS else stamp
    return datetime.fromtimestamp(seconds, tz=UTC)
