"""What NVSentinel says of the cards of a node.

A condition of it gathers a sentence for each thing that is impacted::

    SysLogsXIDError  True  "ErrorCode:79 GPU:3 PCI:… Recommended Action=RESTART_BM;ErrorCode:48 GPU:0 …;"
                        └ of the driver  └ the card of the node   └ what it would have done
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from controlplane.adapters.clusters.kubernetes.conditions import (
    FRESH,
    conditions_of,
    instant_of,
    is_silent,
)
from controlplane.adapters.clusters.kubernetes.inspection import event_of
from controlplane.adapters.clusters.kubernetes.keepers import is_check_of_nvsentinel
from controlplane.adapters.clusters.kubernetes.sign_tables import levels, table
from controlplane.domain.faults import FaultLevel
from controlplane.domain.health.signals import Origin
from controlplane.ports.diagnoses import Sign

Object = Mapping[str, Any]

_CODE: Final = re.compile(r"\bErrorCode:(\S+)")
_ACTION: Final = re.compile(r"\bRecommended Action=(\w+)")
#: Longer ones are no indices.
_ENTITY: Final = r"(?:^|\s){kind}:(\d{{1,4}})(?=\s|$)"


def node_signs(node: Object) -> Iterator[Sign]:
    """Of its conditions; none of a node that is silent."""
    if is_silent(node):
        return
    name = str(node["metadata"]["name"])
    for condition in conditions_of(node):
        kind = str(condition.get("type", ""))
        if condition.get("status") == "True" and is_check_of_nvsentinel(kind):
            since = instant_of(condition.get("lastTransitionTime"))
            yield from _condition_signs(
                name, kind, str(condition.get("message") or ""), since=since
            )


def event_signs(events: Iterable[Object], *, at: datetime) -> Iterator[Sign]:
    """What it calls not fatal: notes, for as long as they are news."""
    for each in events:
        kind = str(each.get("type") or "")
        event = event_of(each)
        about, _, node = event.about.partition("/")
        if is_check_of_nvsentinel(kind) and about == "node" and event.at > at - FRESH:
            yield Sign(
                node=node,
                index=_card(event.message),
                origin=Origin.EVENT,
                code=kind,
                level=FaultLevel.NOTE,
                vendor=str(table("nvsentinel")["vendor"]),
                message=event.message,
                since=min(event.at, at),
            )


def _condition_signs(
    node: str, kind: str, message: str, *, since: datetime | None
) -> Iterator[Sign]:
    own = table("nvsentinel")
    for sentence in [part.strip() for part in message.split(";") if part.strip()] or [""]:
        codes = _CODE.findall(sentence)
        action = _ACTION.search(sentence)
        coded = kind in own["coded"] and bool(codes)
        for code in codes if coded else [" ".join((kind, *codes[:1]))]:
            yield Sign(
                node=node,
                index=_card(sentence),
                origin=Origin.NVSENTINEL,
                code=code,
                # Of its own codes the fault map knows; else what it recommends says how bad it is.
                level=None if coded else _level(action[1] if action else ""),
                vendor=str(own["vendor"]),
                message=f"{kind}: {sentence}" if sentence else kind,
                since=since,
            )


def _level(action: str) -> FaultLevel:
    return levels("nvsentinel", "actions").get(action, FaultLevel.ISOLATE)


def _card(sentence: str) -> int | None:
    found = re.search(_ENTITY.format(kind=re.escape(table("nvsentinel")["card"])), sentence)
    return int(found[1]) if found else None
