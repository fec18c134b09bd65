"""Signals from node conditions and node events: kubelet, node-problem-detector and NVSentinel.

Pure functions over plain dicts. A condition lasts as long as it is reported; an event is a moment. A node whose
``Ready`` is ``Unknown`` is unreachable, and its other conditions are as old as its last heartbeat.

A condition of NVSentinel holds one sentence for each affected entity::

    SysLogsXIDError  True  "ErrorCode:79 GPU:3 PCI:… Recommended Action=RESTART_BM;ErrorCode:48 GPU:0 …;"
                        └ of the driver  └ the card of the node   └ what it would have done
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from controlplane.adapters.clusters.kubernetes.inspection import cluster_event
from controlplane.adapters.clusters.kubernetes.signal_tables import (
    is_nvsentinel_check,
    signal_levels,
    signal_table,
)
from controlplane.domain.health.faults import FaultLevel, Origin
from controlplane.ports.clusters import NODE_UNREACHABLE, ClusterSignal

Object = Mapping[str, Any]

#: An event counts as recent for so long; diagnosis runs much more often.
EVENT_MAX_AGE: Final = timedelta(minutes=10)
#: Where events about nodes are, which have no namespace.
EVENTS: Final = "/api/v1/namespaces/default/events"
EVENTS_QUERY: Final[Mapping[str, str]] = {"fieldSelector": "involvedObject.kind=Node"}
_READY: Final = "Ready"


def node_conditions(node: Object) -> tuple[Object, ...]:
    return tuple((node.get("status") or {}).get("conditions") or ())


def is_unreachable(node: Object) -> bool:
    """Whether its Ready condition is Unknown: the kubelet stopped reporting."""
    return any(
        each.get("type") == _READY and each.get("status") == "Unknown"
        for each in node_conditions(node)
    )


def node_condition_signals(node: Object) -> Iterator[ClusterSignal]:
    """Of kubelet and of node-problem-detector."""
    name = str(node["metadata"]["name"])
    unreachable = is_unreachable(node)
    for condition in node_conditions(node):
        kind, status = str(condition.get("type", "")), condition.get("status")
        if kind == _READY:
            if unreachable:
                yield _condition_signal(
                    name, condition, origin=Origin.SILENCE, code=NODE_UNREACHABLE
                )
            elif status == "False":
                yield _condition_signal(name, condition, origin=Origin.CONDITION, code="NotReady")
        elif status == "True" and not unreachable and kind in signal_levels("conditions"):
            yield _condition_signal(name, condition, origin=Origin.CONDITION, code=kind)


def node_event_signals(events: Iterable[Object], *, at: datetime) -> Iterator[ClusterSignal]:
    """Of events about nodes that are news at that time."""
    known = signal_levels("events")
    for each in events:
        event = cluster_event(each)
        kind, _, node = event.about.partition("/")
        if kind == "node" and event.reason in known and event.at > at - EVENT_MAX_AGE:
            yield ClusterSignal(
                node=node,
                origin=Origin.EVENT,
                code=event.reason,
                level=known[event.reason],
                message=event.message,
                since=min(event.at, at),
            )


#: Nothing new comes to a node that is not ready, by the cluster's own doing and ours; what runs there may go on.
_OWN_LEVELS: Final = {NODE_UNREACHABLE: FaultLevel.ISOLATE, "NotReady": FaultLevel.NOTE}


def _condition_signal(node: str, condition: Object, *, origin: Origin, code: str) -> ClusterSignal:
    parts = (condition.get("reason"), condition.get("message"))
    return ClusterSignal(
        node=node,
        origin=origin,
        code=code,
        level=_OWN_LEVELS.get(code) or signal_levels("conditions")[code],
        message=": ".join(str(word) for word in parts if word),
        since=parse_condition_time(condition.get("lastTransitionTime")),
    )


def parse_condition_time(text: object) -> datetime | None:
    """As the API writes instants; None where it wrote none that can be read."""
    try:
        found = datetime.fromisoformat(str(text)) if text else None
    except ValueError:
        return None
    return found if found is not None and found.tzinfo is not None else None


_CODE: Final = re.compile(r"\bErrorCode:(\S+)")
_ACTION: Final = re.compile(r"\bRecommended Action=(\w+)")
#: Longer ones are no indices.
_ENTITY: Final = r"(?:^|\s){kind}:(\d{{1,4}})(?=\s|$)"


def nvsentinel_condition_signals(node: Object) -> Iterator[ClusterSignal]:
    """Signals from its conditions; none for a node that stopped reporting."""
    if is_unreachable(node):
        return
    name = str(node["metadata"]["name"])
    for condition in node_conditions(node):
        kind = str(condition.get("type", ""))
        if condition.get("status") == "True" and is_nvsentinel_check(kind):
            since = parse_condition_time(condition.get("lastTransitionTime"))
            yield from _signals_of_message(
                name, kind, str(condition.get("message") or ""), since=since
            )


def nvsentinel_event_signals(events: Iterable[Object], *, at: datetime) -> Iterator[ClusterSignal]:
    """What it calls not fatal: notes, for as long as they are news."""
    for each in events:
        kind = str(each.get("type") or "")
        event = cluster_event(each)
        about, _, node = event.about.partition("/")
        if is_nvsentinel_check(kind) and about == "node" and event.at > at - EVENT_MAX_AGE:
            yield ClusterSignal(
                node=node,
                index=_find_card_index(event.message),
                origin=Origin.EVENT,
                code=kind,
                level=FaultLevel.NOTE,
                vendor=str(signal_table("nvsentinel")["vendor"]),
                message=event.message,
                since=min(event.at, at),
            )


def _signals_of_message(
    node: str, kind: str, message: str, *, since: datetime | None
) -> Iterator[ClusterSignal]:
    own = signal_table("nvsentinel")
    for entry in [part.strip() for part in message.split(";") if part.strip()] or [""]:
        codes = _CODE.findall(entry)
        action = _ACTION.search(entry)
        coded = kind in own["coded"] and bool(codes)
        for code in codes if coded else [" ".join((kind, *codes[:1]))]:
            yield ClusterSignal(
                node=node,
                index=_find_card_index(entry),
                origin=Origin.NVSENTINEL,
                code=code,
                # The fault map covers its own codes; otherwise its recommended action gives the severity.
                level=None if coded else _fault_level(action[1] if action else ""),
                vendor=str(own["vendor"]),
                message=f"{kind}: {entry}" if entry else kind,
                since=since,
            )


def _fault_level(action: str) -> FaultLevel:
    return signal_levels("nvsentinel", "actions").get(action, FaultLevel.ISOLATE)


def _find_card_index(entry: str) -> int | None:
    found = re.search(_ENTITY.format(kind=re.escape(signal_table("nvsentinel")["card"])), entry)
    return int(found[1]) if found else None
