"""What Kubernetes says of its nodes: conditions of kubelet and of node-problem-detector, and events about them.

Pure functions over plain dicts. A condition stands as long as it is told; an event is a moment. Nobody hears of a
node whose ``Ready`` is unknown: that is silence, and says nothing of its other conditions, which are as old.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from controlplane.adapters.clusters.kubernetes.inspection import event_of
from controlplane.adapters.clusters.kubernetes.sign_tables import levels
from controlplane.domain.faults import FaultLevel
from controlplane.domain.health.signals import Origin
from controlplane.ports.diagnoses import SILENT, Sign

Object = Mapping[str, Any]

#: An event counts as news for so long: whoever asks does so much more often.
FRESH: Final = timedelta(minutes=10)
#: Where events about nodes are, which have no namespace.
EVENTS: Final = "/api/v1/namespaces/default/events"
EVENTS_QUERY: Final[Mapping[str, str]] = {"fieldSelector": "involvedObject.kind=Node"}
_READY: Final = "Ready"


def conditions_of(node: Object) -> tuple[Object, ...]:
    return tuple((node.get("status") or {}).get("conditions") or ())


def is_silent(node: Object) -> bool:
    """Whether its cluster has given up waiting for word of it."""
    return any(
        each.get("type") == _READY and each.get("status") == "Unknown"
        for each in conditions_of(node)
    )


def node_signs(node: Object) -> Iterator[Sign]:
    """Of kubelet and of node-problem-detector."""
    name = str(node["metadata"]["name"])
    silent = is_silent(node)
    for condition in conditions_of(node):
        kind, status = str(condition.get("type", "")), condition.get("status")
        if kind == _READY:
            if silent:
                yield _sign(name, condition, origin=Origin.SILENCE, code=SILENT)
            elif status == "False":
                yield _sign(name, condition, origin=Origin.CONDITION, code="NotReady")
        elif status == "True" and not silent and kind in levels("conditions"):
            yield _sign(name, condition, origin=Origin.CONDITION, code=kind)


def event_signs(events: Iterable[Object], *, at: datetime) -> Iterator[Sign]:
    """Of events about nodes that are news at that time."""
    known = levels("events")
    for each in events:
        event = event_of(each)
        kind, _, node = event.about.partition("/")
        if kind == "node" and event.reason in known and event.at > at - FRESH:
            yield Sign(
                node=node,
                origin=Origin.EVENT,
                code=event.reason,
                level=known[event.reason],
                message=event.message,
                since=min(event.at, at),
            )


#: Nothing new comes to a node that is not ready, by the cluster's own doing and ours; what runs there may go on.
_OWN_LEVELS: Final = {SILENT: FaultLevel.ISOLATE, "NotReady": FaultLevel.NOTE}


def _sign(node: str, condition: Object, *, origin: Origin, code: str) -> Sign:
    words = (condition.get("reason"), condition.get("message"))
    return Sign(
        node=node,
        origin=origin,
        code=code,
        level=_OWN_LEVELS.get(code) or levels("conditions")[code],
        message=": ".join(str(word) for word in words if word),
        since=instant_of(condition.get("lastTransitionTime")),
    )


def instant_of(text: object) -> datetime | None:
    """As the API writes instants; None where it wrote none that can be read."""
    try:
        found = datetime.fromisoformat(str(text)) if text else None
    except ValueError:
        return None
    return found if found is not None and found.tzinfo is not None else None
