"""Signals of any origin become faults: one row for each while it is open."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F, Q, QuerySet, Value
from django.db.models.functions import Coalesce, Greatest
from psycopg.types.json import Jsonb

from apps.accounts.models import User
from apps.accounts.services import record_audit_entry
from apps.fleet.selectors import require_fleet_operator
from apps.jobs.models import Attempt
from apps.monitoring.models import Decision, Fault, Isolation
from apps.quotas.models import Allocation
from controlplane.domain.common.reasons import Reason, truncate_reason
from controlplane.domain.health.faults import FaultLevel, FaultSignal, SignalOrigin
from controlplane.domain.health.snapshots import CrashOrigin, HealthAction
from controlplane.domain.health.suspicions import LoggedCrash, find_crash_signature
from controlplane.domain.jobs.lifecycle import AttemptState
from controlplane.outbox.messages import publish_once
from controlplane.persistence.models import new_uid
from controlplane.persistence.reasons import reason_as_json
from controlplane.persistence.transactions import fetch_rows

log = logging.getLogger(__name__)

#: Longer texts are truncated: they are for display, and some come from defective machines.
_LONGEST_MESSAGE = 2000
_LONGEST_CODE = 120
#: Retention of ended faults, and how many a run deletes at most; the next run continues.
FAULT_RETENTION = timedelta(days=90)
_FORGOTTEN_A_TURN = 5000

#: Lock order of faults wherever signals are recorded.
_FAULT_ORDER = ("node_id", F("card_id").asc(nulls_first=True), "origin", "code")

FaultLocation = tuple[int, int | None]


@dataclass(slots=True)
class _SignalGroup:
    """All signals of one fault in a batch, in the order of their times."""

    first: datetime
    last: FaultSignal
    #: The most severe active one; None if there is none.
    worst: FaultSignal | None = None
    times: int = 0


@transaction.atomic
def signals_record(*, signals: Sequence[FaultSignal], at: datetime) -> int:
    """Record signals; return how many concern known nodes and cards.

    A repeated signal creates no second fault, and an older one changes nothing. New, more severe or ended faults
    trigger the decision controller. Times after ``at`` are clamped, as the sender's clock may be ahead. The
    number of statements does not depend on the number of signals.
    """
    placed = _locate_fault_signals([_clamp_signal_time(signal, at) for signal in signals])
    if missing := len(signals) - len(placed):
        log.warning("signs about unknown nodes or cards", extra={"signs": missing})
    groups = _group_signals(placed)
    stirred = _write_faults(groups, at=at) | _end_faults(groups)
    for cluster in sorted({groups[key].last.cluster for key in stirred}):
        publish_once("faults.changed", cluster_uid=cluster)
    return len(placed)


_Key = tuple[int, int | None, str, str]


def _clamp_signal_time(signal: FaultSignal, at: datetime) -> FaultSignal:
    return replace(signal, at=at) if signal.at > at else signal


def _locate_fault_signals(
    signals: Sequence[FaultSignal],
) -> list[tuple[FaultLocation, FaultSignal]]:
    """Signals whose node and card, if any, exist in the fleet."""
    names = sorted({(signal.cluster, signal.node) for signal in signals})
    if not names:
        return []
    nodes: dict[tuple[str, str], int] = {}
    cards: dict[tuple[str, str, int], int] = {}
    rows = fetch_rows(
        """
        SELECT named.cluster, named.node, node.id, card.index, card.id
          FROM unnest(%s::text[], %s::text[]) AS named(cluster, node)
          JOIN fleet_cluster AS cluster ON cluster.uid = named.cluster AND cluster.removed_at IS NULL
          JOIN fleet_node AS node ON node.cluster_id = cluster.id AND node.name = named.node
                                 AND node.removed_at IS NULL
          LEFT JOIN fleet_card AS card ON card.node_id = node.id AND card.parent_id IS NULL
                                      AND card.removed_at IS NULL
        """,
        [list(column) for column in zip(*names, strict=True)],
    )
    for cluster, node, node_id, index, card_id in rows:
        nodes[cluster, node] = node_id
        if card_id is not None:
            cards[cluster, node, index] = card_id
    placed: list[tuple[FaultLocation, FaultSignal]] = []
    for signal in signals:
        home = nodes.get((signal.cluster, signal.node))
        card = None
        if signal.index is not None:
            card = cards.get((signal.cluster, signal.node, signal.index))
        if home is not None and (signal.index is None or card is not None):
            placed.append(((home, card), signal))
    return placed


def _group_signals(placed: Iterable[tuple[FaultLocation, FaultSignal]]) -> dict[_Key, _SignalGroup]:
    groups: dict[_Key, _SignalGroup] = {}
    for (node, card), signal in sorted(placed, key=lambda one: one[1].at):
        key = (node, card, str(signal.origin), signal.code[:_LONGEST_CODE])
        group = groups.get(key)
        if group is None:
            group = groups[key] = _SignalGroup(first=signal.at, last=signal)
        group.last = signal
        if signal.active:
            group.times += 1
            if group.worst is None or signal.level >= group.worst.level:
                group.worst = signal
    return groups


def _write_faults(groups: Mapping[_Key, _SignalGroup], *, at: datetime) -> set[_Key]:
    """Write open faults; return the keys of those that are new or more severe than before."""
    # In one order, so that two batches cannot deadlock.
    standing = sorted(
        ((key, group.worst, group) for key, group in groups.items() if group.worst is not None),
        key=lambda one: (one[0][0], one[0][1] or 0, *one[0][2:]),
    )
    rows = [
        (
            new_uid(),
            *key,
            worst.vendor[:40],
            int(worst.level),
            Jsonb(reason_as_json(truncate_reason(worst.message, _LONGEST_MESSAGE))),
            min(group.first, worst.at),
            worst.at,
            group.times,
        )
        for key, worst, group in standing
    ]
    if not rows:
        return set()
    changed = fetch_rows(
        """
        WITH told AS (
            SELECT * FROM unnest(%s::text[], %s::bigint[], %s::bigint[], %s::text[], %s::text[], %s::text[],
                                 %s::smallint[], %s::jsonb[], %s::timestamptz[], %s::timestamptz[], %s::int[])
                AS told(uid, node_id, card_id, origin, code, vendor, level, message, began_at, reported_at,
                        times)
        ), before AS (
            SELECT told.uid, max(fault.level) FILTER (WHERE fault.ended_at IS NULL) AS level,
                   bool_or(fault.ended_at >= told.reported_at) AS is_over
              FROM told JOIN monitoring_fault AS fault
                ON fault.node_id = told.node_id AND fault.card_id IS NOT DISTINCT FROM told.card_id
               AND fault.origin = told.origin AND fault.code = told.code
             GROUP BY told.uid
        ), kept AS (
            INSERT INTO monitoring_fault AS fault
                   (uid, created_at, node_id, card_id, origin, code, vendor, level, message,
                    began_at, reported_at, noticed_at, count, acknowledged_by_name, note)
            SELECT told.uid, %s, told.node_id, told.card_id, told.origin, told.code, told.vendor, told.level,
                   told.message, told.began_at, told.reported_at, %s, told.times, '', ''
              FROM told LEFT JOIN before USING (uid)
             WHERE before.is_over IS NOT TRUE
            ON CONFLICT (node_id, card_id, origin, code) WHERE ended_at IS NULL DO UPDATE
               SET reported_at = EXCLUDED.reported_at, level = EXCLUDED.level, message = EXCLUDED.message,
                   count = fault.count + EXCLUDED.count
             WHERE EXCLUDED.reported_at > fault.reported_at
            RETURNING node_id, card_id, origin, code, level
        )
        SELECT kept.node_id, kept.card_id, kept.origin, kept.code
          FROM kept JOIN told ON told.node_id = kept.node_id AND told.card_id IS NOT DISTINCT FROM kept.card_id
                             AND told.origin = kept.origin AND told.code = kept.code
          LEFT JOIN before ON before.uid = told.uid
         WHERE before.level IS NULL OR kept.level > before.level
        """,
        [*(list(column) for column in zip(*rows, strict=True)), at, at],
    )
    return {(row[0], row[1], row[2], row[3]) for row in changed}


def _end_faults(groups: Mapping[_Key, _SignalGroup]) -> set[_Key]:
    """End faults whose last signal is inactive; return the keys of those that were open."""
    over = sorted(
        ((key, group.last.at) for key, group in groups.items() if not group.last.active),
        key=lambda one: (one[0][0], one[0][1] or 0, *one[0][2:]),
    )
    if not over:
        return set()
    rows = [(*key, ended_at) for key, ended_at in over]
    changed = fetch_rows(
        """
        UPDATE monitoring_fault AS fault SET ended_at = greatest(over.ended_at, fault.began_at)
          FROM unnest(%s::bigint[], %s::bigint[], %s::text[], %s::text[], %s::timestamptz[])
               AS over(node_id, card_id, origin, code, ended_at)
         WHERE fault.node_id = over.node_id AND fault.card_id IS NOT DISTINCT FROM over.card_id
           AND fault.origin = over.origin AND fault.code = over.code
           AND fault.ended_at IS NULL AND fault.reported_at <= over.ended_at
        RETURNING fault.node_id, fault.card_id, fault.origin, fault.code
        """,
        [list(column) for column in zip(*rows, strict=True)],
    )
    return {(row[0], row[1], row[2], row[3]) for row in changed}


def stale_faults_end(*, after: Mapping[SignalOrigin, timedelta], at: datetime) -> int:
    """End momentary faults that were not reported again for a while; return their number.

    Faults of nodes that were removed with their cluster end too.

    :param after: by origin, for origins that never report an end.
    """
    lapsed = Q(node__removed_at__isnull=False)
    for origin, retention in after.items():
        lapsed |= Q(origin=origin, reported_at__lt=at - retention)
    return Fault.objects.filter(lapsed, ended_at=None).update(ended_at=at)


@transaction.atomic
def faults_end(*, faults: QuerySet[Fault], reason: str, actor: User, at: datetime) -> int:
    """End faults that no source can end any more, with a reason for each; return their number."""
    rows = faults.filter(ended_at=None).select_related("node__cluster")
    over = list(rows.select_for_update(no_key=True, of=("self",)).order_by(*_FAULT_ORDER))
    ended = Fault.objects.filter(pk__in=[fault.pk for fault in over])
    ended.update(ended_at=Greatest("began_at", Value(at)))
    Decision.objects.bulk_create(
        Decision(
            node_id=fault.node_id,
            card_id=fault.card_id,
            fault=fault,
            action=HealthAction.NOTE,
            outcome=Decision.Outcome.DONE,
            reason=reason,
            actor_name=actor.username,
            at=at,
        )
        for fault in over
    )
    for cluster in sorted({fault.node.cluster.uid for fault in over}):
        publish_once("faults.changed", cluster_uid=cluster)
    return len(over)


@transaction.atomic
def faults_prune(*, at: datetime) -> int:
    """Delete faults that ended long ago, with their decisions; return their number.

    Faults of open isolations are kept. Decisions about a fault are kept as long as the fault, as they show that
    it was handled; other decisions are deleted by age.
    """
    oldest = at - FAULT_RETENTION
    explaining = Isolation.objects.filter(ended_at=None).exclude(fault=None)
    over = Fault.objects.filter(ended_at__lt=oldest).exclude(pk__in=explaining.values("fault"))
    some = list(over.order_by("ended_at").values_list("pk", flat=True)[:_FORGOTTEN_A_TURN])
    Fault.objects.filter(pk__in=some).delete()
    Decision.objects.filter(fault=None, at__lt=oldest).delete()
    return len(some)


@transaction.atomic
def faults_acknowledge(
    *, uids: Sequence[str], note: str, actor: User, at: datetime, updated_at: datetime | None = None
) -> frozenset[str]:
    """Acknowledge faults with a note; return those that were not acknowledged before.

    :param news: time of the latest report: an acknowledgement before it does not count.
    :raises PermissionRefused: unless ``actor`` operates the fleet.
    """
    require_fleet_operator(actor)
    unread = Q(acknowledged_at=None)
    if updated_at is not None:
        unread |= Q(acknowledged_at__lt=updated_at)
    rows = Fault.objects.select_for_update(no_key=True, of=("self",)).select_related("node", "card")
    faults = list(rows.filter(unread, uid__in=uids).order_by(*_FAULT_ORDER))
    for fault in faults:
        fault.acknowledged_at, fault.acknowledged_by_name = at, actor.username
        fault.note = note[:_LONGEST_MESSAGE]
        record_audit_entry(fault, actor=actor, action="fault.acknowledge", note=note)
    Fault.objects.bulk_update(faults, ["acknowledged_at", "acknowledged_by_name", "note"])
    return frozenset(fault.uid for fault in faults)


def job_crash_record(*, job_uid: str, at: datetime) -> int:
    """Record a crash signal at each card of the job's last attempt; return the number of cards.

    None if the log has no known signature, or if the program itself is to blame. The fault has the lowest level,
    as a log is under the control of its owner; decisions consider the logs of several jobs.
    """
    attempt = (
        Attempt.objects.select_related("job")
        .filter(job__uid=job_uid, state=AttemptState.FAILED)
        .order_by("-number")
        .first()
    )
    crash = find_crash_signature(attempt.log_tail) if attempt is not None else None
    if attempt is None or crash is None or crash.blame is CrashOrigin.PROGRAM:
        return 0
    whole = Coalesce("card__parent__index", "card__index")
    held = Allocation.objects.filter(claim__uid=attempt.claim_uid)
    places = held.values_list("node__cluster__uid", "node__name", whole)
    signals = [
        _crash_signal(crash, cluster=cluster, node=node, index=index, at=at)
        for cluster, node, index in places.distinct()
    ]
    return signals_record(signals=signals, at=at) if signals else 0


def _crash_signal(
    crash: LoggedCrash, *, cluster: str, node: str, index: int, at: datetime
) -> FaultSignal:
    """Visible to all users, so it contains neither the job's name nor lines of its log."""
    return FaultSignal(
        origin=SignalOrigin.JOB,
        cluster=cluster,
        node=node,
        index=index,
        code=crash.fault or crash.code,
        level=FaultLevel.NOTE,
        at=at,
        message=Reason(
            "fault.signal.job_log",
            "reported in the log of a job that crashed here ({fault_code})",
            fault_code=crash.code,
        ),
        vendor=crash.vendor,
    )
