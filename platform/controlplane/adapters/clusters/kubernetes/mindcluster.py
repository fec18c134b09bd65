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

from controlplane.adapters.clusters.kubernetes.conditions import FRESH
from controlplane.adapters.clusters.kubernetes.inspection import event_of
from controlplane.adapters.clusters.kubernetes.sign_tables import levels, table
from controlplane.domain.faults import FaultLevel
from controlplane.domain.health.signals import Origin
from controlplane.ports.diagnoses import Sign, Unread

Object = Mapping[str, Any]

#: ``Ascend910-3``, ``npu-3``.
_CARD: Final = re.compile(r"[A-Za-z][\w.]*-(\d{1,4})")
_FAULTS: Final = "-Fault"
#: The one that is recommended first.
_WORDS: Final = ("fault_handling", "fault_level", "large_model_fault_level")
#: As the device plug-in words its events, which are about its own pod.
_EVENT: Final = re.compile(
    r"nodeName:(?P<node>[\w.-]+), assertion:(?P<assertion>\w+), cardID:(?P<card>\d+), "
    r"deviceID:(?P<device>\d+), faultCodes:(?P<code>\w+)"
)
#: Beyond it an instant is counted in milliseconds.
_SECONDS: Final = 100_000_000_000
_SHOWN: Final = 200


@dataclass(slots=True)
class Told:
    """What ConfigMaps say, gathered one by one."""

    signs: list[Sign] = field(default_factory=list)
    unread: list[Unread] = field(default_factory=list)


def config_map_told(config_map: Object, *, into: Told) -> None:
    """What one ConfigMap says, of all nodes together or of one."""
    name = str(config_map["metadata"]["name"])
    owner = _node_of(name)
    for key, text in sorted((config_map.get("data") or {}).items()):
        if owner and key == "ManuallySeparateNPU":
            into.signs += _separated(owner, str(text))
            continue
        try:
            content = json.loads(text)
        except (TypeError, ValueError, RecursionError) as error:
            # Some keys hold plain words; what should be JSON begins like it.
            if str(text).lstrip().startswith(("{", "[")):
                _unread(name, owner, f"{key} is not JSON: {error}", into=into)
            continue
        if owner:
            if isinstance(content, Mapping):
                _entry(owner, content, where=name, into=into)
            continue
        for entry, said in content.items() if isinstance(content, Mapping) else ():
            if node := _node_of(str(entry)):
                _entry(node, said, where=f"{name}, {entry}", into=into)


def event_signs(events: Iterable[Object], *, at: datetime) -> Iterator[Sign]:
    """What happened to a card, or is over, as far as it is news.

    They name a board and a chip on it, which is not its place in the node: they are notes of the node, and which
    card it is the ConfigMaps say.
    """
    for each in events:
        event = event_of(each)
        found = _EVENT.search(event.message)
        if found is not None and event.at > at - FRESH:
            yield Sign(
                node=found["node"],
                origin=Origin.EVENT,
                code=f"{found['code']} of {found['card']}.{found['device']}",
                level=FaultLevel.NOTE,
                vendor=str(table("mindcluster")["vendor"]),
                message=event.message[:_SHOWN],
                since=min(event.at, at),
                active=found["assertion"] != "Recovery",
            )


def is_about_nodes(config_map: Object) -> bool:
    """Whether it is one of the device plug-in's or noded's own."""
    return bool(_node_of(str(config_map["metadata"]["name"])))


def _node_of(name: str) -> str:
    """The node that an entry is about; empty if it is about none."""
    for prefix in table("mindcluster")["prefixes"]:
        if name.startswith(prefix):
            return name.removeprefix(prefix)
    return ""


def _unread(name: str, node: str, reason: str, *, into: Told) -> None:
    reason = f"the ConfigMap {name} of MindCluster cannot be read: {reason}"[:_SHOWN]
    into.unread.append(Unread(origin=Origin.MINDCLUSTER, node=node, reason=reason))
    if node:
        into.signs.append(
            _sign(node, None, code="unreadable ConfigMap", level=FaultLevel.NOTE, message=reason)
        )


def _entry(node: str, said: object, *, where: str, into: Told) -> None:
    """Of one node: of its cards, its switches or its other parts, as far as it says something of each."""
    if not isinstance(said, Mapping):
        _unread(where, node, f"it is {type(said).__name__}, not an object", into=into)
        return
    inner = next((said[key] for key in ("DeviceInfo", "NodeInfo") if key in said), said)
    if not isinstance(inner, Mapping):
        _unread(where, node, "it holds no object", into=into)
        return
    if isinstance(cards := inner.get("DeviceList"), Mapping):
        _cards(node, cards, where=where, into=into)
    if "FaultTimeAndLevelMap" in inner or ("FaultLevel" in inner and "NodeStatus" in inner):
        into.signs += _switches(node, inner)
    if isinstance(parts := inner.get("FaultDevList"), list):
        into.signs += _parts(node, parts)


# -- Cards --


def _cards(node: str, lists: Object, *, where: str, into: Told) -> None:
    found: list[Sign] = []
    for key, text in sorted(lists.items()):
        if not key.endswith(_FAULTS) or not text:
            continue
        try:
            faults = json.loads(text) if isinstance(text, str) else text
        except (ValueError, RecursionError) as error:
            _unread(where, node, f"{key} is not JSON: {error}", into=into)
            continue
        for fault in faults if isinstance(faults, list) else ():
            if isinstance(fault, Mapping):
                found += _faults(node, fault)
    told = {(sign.index, kind) for sign in found for kind in _lists_of(sign)}
    for kind, level in table("mindcluster", "lists").items():
        for key, names in lists.items():
            if key.endswith(f"-{kind}") and isinstance(names, str):
                found += (
                    _sign(
                        node,
                        index,
                        code=kind,
                        level=FaultLevel[level],
                        message=f"listed as {kind} without a fault",
                    )
                    for index in _indices(names)
                    if (index, kind) not in told
                )
    into.signs += found


def _lists_of(sign: Sign) -> tuple[str, ...]:
    """Lists in which a card may be because of that fault; that it is being reset is said beside it."""
    return () if sign.level is FaultLevel.NOTE else ("Unhealthy", "NetworkUnhealthy")


def _faults(node: str, fault: Object) -> Iterator[Sign]:
    """One sign for each code; of the node itself where no card is named."""
    index = next(iter(_indices(str(fault.get("npu_name") or ""))), None)
    kind = str(fault.get("fault_type") or "")
    by_code = fault.get("fault_time_and_level_map")
    if not isinstance(by_code, Mapping) or not by_code:
        codes = str(fault.get("fault_code") or "").split(",")
        by_code = {code.strip(): {} for code in codes if code.strip()} or {kind or "unnamed": {}}
    word = next((str(fault[each]) for each in _WORDS if fault.get(each)), "")
    for code, said in by_code.items():
        own = said if isinstance(said, Mapping) else {}
        level = str(own.get("fault_level") or word)
        yield _sign(
            node,
            index,
            code=str(code),
            level=levels("mindcluster", "levels").get(level),
            message=f"{kind} {level}".strip(),
            since=_instant(own.get("fault_time")),
        )


def _separated(node: str, names: str) -> Iterator[Sign]:
    """Cards that MindCluster keeps apart until a person lets them go."""
    for index in _indices(names):
        yield _sign(
            node,
            index,
            code="ManuallySeparateNPU",
            level=FaultLevel.ISOLATE,
            message="kept apart by MindCluster until a person lets it go",
        )


def _indices(names: str) -> list[int]:
    """``Ascend910-0,Ascend910-3`` → [0, 3]."""
    found = (_CARD.fullmatch(name.strip()) for name in names.split(","))
    return [int(each[1]) for each in found if each is not None]


# -- The node's other parts --


def _switches(node: str, said: Object) -> Iterator[Sign]:
    """Faults of the switches that link its cards: of the node, for each of its cards needs them."""
    whole = str(said.get("FaultLevel") or "")
    by_code = said.get("FaultTimeAndLevelMap")
    if isinstance(by_code, str):
        try:
            by_code = json.loads(by_code)
        except ValueError:
            by_code = None
    if not isinstance(by_code, Mapping) or not by_code:
        by_code = {"switch": {}} if levels("mindcluster", "levels").get(whole, 1) > 1 else {}
    for code, said_of_it in by_code.items():
        own = said_of_it if isinstance(said_of_it, Mapping) else {}
        level = str(own.get("fault_level") or whole)
        yield _sign(
            node,
            None,
            code=str(code),
            level=levels("mindcluster", "levels").get(level),
            message=f"switch {level}".strip(),
            since=_instant(own.get("fault_time")),
        )


def _parts(node: str, parts: Iterable[object]) -> Iterator[Sign]:
    for part in parts:
        if not isinstance(part, Mapping):
            continue
        codes = part.get("FaultCode")
        level = str(part.get("FaultLevel") or "")
        what = f"{part.get('DeviceType', 'part')} {part.get('DeviceId', '')}".strip()
        for code in codes if isinstance(codes, list) else [codes or "unnamed"]:
            yield _sign(
                node,
                None,
                code=str(code),
                level=levels("mindcluster", "levels").get(level),
                message=f"{what}: {level}" if level else what,
            )


def _sign(
    node: str,
    index: int | None,
    *,
    code: str,
    level: FaultLevel | None,
    message: str,
    since: datetime | None = None,
) -> Sign:
    return Sign(
        node=node,
        index=index,
        origin=Origin.MINDCLUSTER,
        code=code[:_SHOWN],
        level=level,
        vendor=str(table("mindcluster")["vendor"]),
        message=message[:_SHOWN],
        since=since,
    )


def _instant(stamp: object) -> datetime | None:
    """Of a count of seconds or milliseconds; None of what is neither."""
    if not isinstance(stamp, int | float) or isinstance(stamp, bool) or not 0 < stamp < 1e14:
        return None
    seconds = stamp / 1000 if stamp > _SECONDS else stamp
    return datetime.fromtimestamp(seconds, tz=UTC)
