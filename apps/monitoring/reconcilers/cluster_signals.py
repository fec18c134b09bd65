"""What clusters themselves say is wrong with their nodes and cards becomes signs; what they no longer say ends.

Each turn asks anew and compares with the faults that stand, so nothing is lost with a turn, and what stays as it
is costs no writing. A cluster that does not answer says nothing of its cards: whatever stood there stands.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from apps.fleet import selectors as fleet
from apps.fleet.models import Cluster
from apps.monitoring.models import Fault
from apps.monitoring.services.faults import signals_record
from controlplane.domain.faults import FaultLevel, FaultMap
from controlplane.domain.health.signals import Origin, Signal
from controlplane.ports import registry
from controlplane.ports.clusters import (
    NODE_UNREACHABLE,
    ClusterDiagnosis,
    ClusterError,
    ClusterSignal,
    DiagnosableCluster,
)

log = logging.getLogger(__name__)

#: What lasts until a cluster no longer says it. An event is a moment, and lapses by itself.
LASTING = (Origin.CONDITION, Origin.MINDCLUSTER, Origin.NVSENTINEL)
#: What stands is told again so often, so that it shows that somebody still says so.
REMINDED_AFTER = timedelta(minutes=5)
#: A turn waits so long for answers, in seconds; who is slower is heard in a later turn.
PATIENCE = 8.0
#: Columns of a fault; texts are compared as they are kept.
_LONGEST_CODE, _LONGEST_MESSAGE = 120, 2000

_asking = ThreadPoolExecutor(max_workers=8, thread_name_prefix="diagnose-cluster")
#: Cluster's uid → the question that it has not answered yet: nobody is asked twice at once.
_open: dict[str, Future[ClusterDiagnosis]] = {}

#: Node, card, origin, code.
Key = tuple[str, int | None, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Standing:
    level: int
    message: str
    told_at: datetime


def cluster_signals_sync(*, at: datetime, uid: str | None = None) -> int:
    """Ask each cluster that can say it, or one, what is wrong there; how many answered in time."""
    rows = Cluster.objects.all() if uid is None else Cluster.objects.filter(uid=uid)
    clusters = {row.uid: row for row in rows}
    late = {_open[each]: each for each in clusters if each in _open}
    asked = {}
    for row in clusters.values():
        if row.uid not in _open and (question := _question(row)) is not None:
            future = _open[row.uid] = _asking.submit(question)
            asked[future] = row.uid
    # Each is recorded when it comes, and who did not answer before is not waited for again.
    return sum(
        _recorded(clusters[each], future, at=at)
        for future, each in _answers(asked, late)
        if _open.pop(each, None) is not None
    )


def _question(cluster: Cluster) -> Callable[[], ClusterDiagnosis] | None:
    """None of a cluster that says nothing of itself."""
    try:
        adapter = fleet.cluster_adapter(cluster)
    except (ClusterError, registry.UnknownAdapter):
        # Taking stock of it says so, where people see it.
        return None
    except Exception:
        log.exception("a cluster's adapter could not be made", extra={"cluster": cluster.name})
        return None
    return adapter.diagnose if isinstance(adapter, DiagnosableCluster) else None


def _answers(
    asked: Mapping[Future[ClusterDiagnosis], str], late: Mapping[Future[ClusterDiagnosis], str]
) -> Iterator[tuple[Future[ClusterDiagnosis], str]]:
    yield from ((future, uid) for future, uid in late.items() if future.done())
    with suppress(TimeoutError):
        for future in as_completed(asked, timeout=PATIENCE):
            yield future, asked[future]


def _recorded(cluster: Cluster, answer: Future[ClusterDiagnosis], *, at: datetime) -> bool:
    """Whether it answered; one cluster's trouble spoils no other's turn."""
    try:
        signals = tuple(changes(cluster, answer.result(), at=at))
        if signals:
            signals_record(signals=signals, at=at)
    except ClusterError as error:
        told = {"cluster": cluster.name, "error": str(error)}
        log.info("a cluster does not say what is wrong with it", extra=told)
        return False
    except Exception:
        log.exception("a cluster's signs could not be recorded", extra={"cluster": cluster.name})
        return False
    return True


def changes(cluster: Cluster, diagnosis: ClusterDiagnosis, *, at: datetime) -> Iterator[Signal]:
    """What is new, other than it was, due to be told again, or over."""
    for unread in diagnosis.unreadable:
        told = {"cluster": cluster.name, "origin": unread.origin, "node": unread.node}
        log.debug("signs could not be read", extra={**told, "reason": unread.reason})
    standing = _standing(cluster)
    told_now: set[Key] = set()
    for signal in _strongest(cluster, diagnosis, at=at).values():
        key: Key = (signal.node, signal.index, signal.origin, signal.code)
        told_now.add(key)
        if _is_news(signal, standing.get(key)):
            yield signal
    silent = {(unread.origin, unread.node) for unread in diagnosis.unreadable}
    for key, before in standing.items():
        node, index, origin, code = key
        lasts = origin in LASTING or (origin == Origin.SILENCE and code == NODE_UNREACHABLE)
        unheard = {(Origin(origin), ""), (Origin(origin), node)} & silent
        if lasts and key not in told_now and not unheard:
            yield Signal(
                origin=Origin(origin),
                cluster=cluster.uid,
                node=node,
                index=index,
                code=code,
                level=FaultLevel(before.level),
                at=at,
                active=False,
            )


def _standing(cluster: Cluster) -> Mapping[Key, _Standing]:
    origins = (*LASTING, Origin.SILENCE, Origin.EVENT)
    rows = Fault.objects.filter(node__cluster=cluster, ended_at=None, origin__in=origins)
    columns = ("node__name", "card__index", "origin", "code", "level", "message", "told_at")
    return {
        (node, index, origin, code): _Standing(level=level, message=message, told_at=told_at)
        for node, index, origin, code, level, message, told_at in rows.values_list(*columns)
    }


def _is_news(signal: Signal, before: _Standing | None) -> bool:
    if signal.origin is Origin.EVENT:
        return signal.active if before is None else signal.at > before.told_at
    return (
        before is None
        or (signal.level, signal.message) != (before.level, before.message)
        or signal.at >= before.told_at + REMINDED_AFTER
    )


def _strongest(
    cluster: Cluster, diagnosis: ClusterDiagnosis, *, at: datetime
) -> Mapping[Key, Signal]:
    """One sign of each fault: the newest of events, and of what lasts the worst."""
    maps = {name: plugin.profile().faults for name, plugin in registry.chip_plugins().items()}
    found: dict[Key, Signal] = {}
    for sign in diagnosis.signals:
        signal = _signal(cluster, sign, maps=maps, at=at)
        key: Key = (signal.node, signal.index, signal.origin, signal.code)
        rival = found.get(key)
        if rival is None or (signal.at, signal.level) > (rival.at, rival.level):
            found[key] = signal
    return found


def _signal(
    cluster: Cluster, sign: ClusterSignal, *, maps: Mapping[str, FaultMap], at: datetime
) -> Signal:
    known = maps.get(sign.vendor, FaultMap())
    # What lasts is as of now: clocks of nodes are their own affair, and an end of ours must not look newer.
    moment = sign.origin is Origin.EVENT and sign.since is not None
    return Signal(
        origin=sign.origin,
        cluster=cluster.uid,
        node=sign.node,
        index=sign.index,
        code=sign.code[:_LONGEST_CODE],
        level=sign.level or known.level(sign.code, minor=sign.minor),
        at=sign.since if moment and sign.since is not None else at,
        active=sign.active,
        message=sign.message[:_LONGEST_MESSAGE],
        vendor=sign.vendor,
    )
