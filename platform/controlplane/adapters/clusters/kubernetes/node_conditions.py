"""Signals from node conditions and node events: kubelet, node-problem-detector and NVSentinel.

Pure functions over plain dicts. A condition lasts as long as it is reported; an event is a moment. A node whose
``Ready`` is ``Unknown`` is unreachable, and its other conditions are as old as its last heartbeat.

A condition of NVSentinel holds one sentence for each affected entity::

    SysLogsXIDError  True  "ErrorCode:79 GPU:3 PCI:… Recommended Action=RESTART_BM;ErrorCode:48 GPU:0 …;"
                        └ of the driver  └ the card of the node   └ what it would have done

The tables of ``signals.toml`` say which conditions, events and labels mean which fault level, and by which marks
another controller that remediates faults of a node is detected, such as NVSentinel. Ninefold then only observes:
two controllers that drain and reset the same node interfere with each other.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from functools import cache, partial
from importlib.resources import files
from typing import Any, Final

from controlplane.adapters.clusters.kubernetes.api import (
    Object,
    labels_of,
    nested_field,
    object_name,
    parse_time,
)
from controlplane.domain.health.faults import FaultLevel, SignalOrigin
from controlplane.ports.clusters import (
    NODE_UNREACHABLE,
    REMEDIATION_LABEL,
    ClusterEvent,
    ClusterSignal,
)

#: An event counts as recent for so long; diagnosis runs much more often.
EVENT_MAX_AGE: Final = timedelta(minutes=10)
_READY: Final = "Ready"
_LONGEST_MESSAGE: Final = 4096
#: A node that is not ready gets no new pods; running ones may continue.
_OWN_LEVELS: Final = {NODE_UNREACHABLE: FaultLevel.ISOLATE, "NotReady": FaultLevel.NOTE}
_CODE: Final = re.compile(r"\bErrorCode:(\S+)")
_ACTION: Final = re.compile(r"\bRecommended Action=(\w+)")
#: Longer ones are no indices.
_ENTITY: Final = r"(?:^|\s){kind}:(\d{{1,4}})(?=\s|$)"


@cache
def signal_table(*path: str) -> Mapping[str, Any]:
    """One table of the file."""
    if path:
        found: Mapping[str, Any] = signal_table(*path[:-1])[path[-1]]
        return found
    return tomllib.loads(files(__package__).joinpath("signals.toml").read_text(encoding="utf-8"))


@cache
def fault_levels_by_signal(*path: str) -> Mapping[str, FaultLevel]:
    """Word → level, of a table that lists words under levels."""
    lists: Mapping[str, Sequence[str]] = signal_table(*path)
    return {word: FaultLevel[level] for level, names in lists.items() for word in names}


def remediation_labels(node: Object) -> dict[str, str]:
    """The label that claims the node; None without one, or where its administrator set one."""
    labels, own = labels_of(node), signal_table("nvsentinel")
    opted_out = labels.get(own["opt_out"]["label"]) == own["opt_out"]["value"]
    if REMEDIATION_LABEL in labels or opted_out:
        return {}
    # Written only where it runs, also for healthy nodes.
    writes = any(
        is_nvsentinel_check(str(each.get("type", "")))
        for each in nested_field(node, "status", "conditions")
    )
    is_acting = any(label in labels for label in own["acting"])
    return {REMEDIATION_LABEL: str(own["name"])} if writes or is_acting else {}


def is_nvsentinel_check(kind: str) -> bool:
    """Whether a condition or event of that type is its own."""
    return any(fnmatchcase(kind, pattern) for pattern in signal_table("nvsentinel")["checks"])


def is_unreachable(node: Object) -> bool:
    """Whether its Ready condition is Unknown: the kubelet stopped reporting."""
    return any(
        each.get("type") == _READY and each.get("status") == "Unknown"
        for each in nested_field(node, "status", "conditions")
    )


def node_condition_signals(node: Object) -> Iterator[ClusterSignal]:
    """Of kubelet and of node-problem-detector."""
    unreachable = is_unreachable(node)
    for condition in nested_field(node, "status", "conditions"):
        kind, status = str(condition.get("type", "")), condition.get("status")
        code = ""
        if kind == _READY and unreachable:
            code = NODE_UNREACHABLE
        elif kind == _READY and status == "False":
            code = "NotReady"
        elif status == "True" and not unreachable and kind in fault_levels_by_signal("conditions"):
            code = kind
        if code:
            parts = (condition.get("reason"), condition.get("message"))
            yield ClusterSignal(
                node=object_name(node),
                origin=SignalOrigin.SILENCE if code == NODE_UNREACHABLE else SignalOrigin.CONDITION,
                code=code,
                level=_OWN_LEVELS.get(code) or fault_levels_by_signal("conditions")[code],
                message=": ".join(str(word) for word in parts if word),
                since=parse_time(condition.get("lastTransitionTime")),
            )


def cluster_event(event: Object) -> ClusterEvent:
    """The event in plain words; one that bears no time is as old as can be."""
    involved, series = involved_object(event), event.get("series") or {}
    times = (
        series.get("lastObservedTime"),
        event.get("lastTimestamp"),
        event.get("eventTime"),
        event["metadata"].get("creationTimestamp"),
    )
    return ClusterEvent(
        at=next(filter(None, map(parse_time, times)), datetime.min.replace(tzinfo=UTC)),
        warning=event.get("type") == "Warning",
        reason=str(event.get("reason") or ""),
        message=str(event.get("message") or "")[:_LONGEST_MESSAGE],
        about=f"{str(involved.get('kind', '')).lower()}/{involved.get('name', '')}",
        count=max(1, int(series.get("count") or event.get("count") or 1)),
    )


def involved_object(event: Object) -> Object:
    involved: Object = event.get("involvedObject") or event.get("regarding") or {}
    return involved


def recent_events(events: Iterable[Object], *, at: datetime) -> Iterator[tuple[str, ClusterEvent]]:
    """Type and content of recent events."""
    for each in events:
        event = cluster_event(each)
        if event.at > at - EVENT_MAX_AGE:
            yield str(each.get("type") or ""), event


def node_event_signals(events: Iterable[Object], *, at: datetime) -> Iterator[ClusterSignal]:
    """Signals of recent events about nodes.

    Those of NVSentinel are what it does not call fatal: faults of the lowest level while they are recent.
    """
    known = fault_levels_by_signal("events")
    for kind, event in recent_events(events, at=at):
        about, _, node = event.about.partition("/")
        signal = partial(
            ClusterSignal,
            node=node,
            origin=SignalOrigin.EVENT,
            message=event.message,
            since=min(event.at, at),
        )
        if about == "node" and event.reason in known:
            yield signal(code=event.reason, level=known[event.reason])
        if about == "node" and is_nvsentinel_check(kind):
            yield signal(
                index=_find_card_index(event.message),
                code=kind,
                level=FaultLevel.NOTE,
                vendor=str(signal_table("nvsentinel")["vendor"]),
            )


def nvsentinel_condition_signals(node: Object) -> Iterator[ClusterSignal]:
    """Signals from its conditions; none for a node that stopped reporting."""
    own = signal_table("nvsentinel")
    for condition in () if is_unreachable(node) else nested_field(node, "status", "conditions"):
        kind = str(condition.get("type", ""))
        if condition.get("status") != "True" or not is_nvsentinel_check(kind):
            continue
        entries = str(condition.get("message") or "").split(";")
        for entry in list(filter(None, map(str.strip, entries))) or [""]:
            codes, action = _CODE.findall(entry), _ACTION.search(entry)
            coded = kind in own["coded"] and bool(codes)
            # The fault map covers its own codes; otherwise its recommended action gives the severity.
            levels = fault_levels_by_signal("nvsentinel", "actions")
            level = levels.get(action[1] if action else "", FaultLevel.ISOLATE)
            for code in codes if coded else [" ".join((kind, *codes[:1]))]:
                yield ClusterSignal(
                    node=object_name(node),
                    index=_find_card_index(entry),
                    origin=SignalOrigin.NVSENTINEL,
                    code=code,
                    level=None if coded else level,
                    vendor=str(own["vendor"]),
                    message=f"{kind}: {entry}" if entry else kind,
                    since=parse_time(condition.get("lastTransitionTime")),
                )


def _find_card_index(entry: str) -> int | None:
    found = re.search(_ENTITY.format(kind=re.escape(signal_table("nvsentinel")["card"])), entry)
    return int(found[1]) if found else None
