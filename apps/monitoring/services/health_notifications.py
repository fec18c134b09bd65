"""Notifications to operators about the fleet's health, with the details that a repair needs."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from typing import NotRequired

from typing_extensions import TypedDict

from apps.fleet.models import Cluster
from apps.monitoring.models import Decision, Isolation
from apps.monitoring.selectors.faults import fault_meaning
from apps.notifications.services.notifications import NotificationEvent, notification_send
from controlplane.domain.alerts.notifications import NotificationKind, NotificationSubject


def isolation_notify(*, uid: str, kind: NotificationKind) -> bool:
    """Notify of an isolation that began, failed its burn-in run or ended; return False if it was notified
    before.
    """
    rows = Isolation.objects.select_related("node__cluster", "card", "fault")
    row = rows.filter(uid=uid).first()
    if row is None:
        return False
    name = f"{row.node.cluster.name}/{row.card or row.node}"
    at, actor_name, reason = row.began_at, row.actor_name, row.reason
    last = row.history.order_by("-id").first()
    if last is not None and kind is not NotificationKind.CARD_ISOLATED:
        at, actor_name, reason = last.at, last.actor, last.reason
    if kind is NotificationKind.CARD_UNPROVED:
        # Where no burn-in run is possible the state is unchanged: the notification says why.
        reason = row.evidence.get("impossible") or reason
    return notification_send(
        NotificationEvent(
            uid=_notification_uid(f"{kind}:{row.uid}:{row.burn_ins}"),
            kind=kind,
            team=None,
            subject_kind=NotificationSubject.CARD if row.card else NotificationSubject.NODE,
            subject_uid=(row.card or row.node).uid,
            subject_name=name,
            at=at,
            actor_name=actor_name,
            payload={"reason": reason, "evidence": _repair_evidence(row)},
        )
    )


def _notification_uid(what: str) -> str:
    """Equal for a repeated notification; different for each failed burn-in run."""
    return hashlib.sha256(what.encode()).hexdigest()[:32]


class FaultRecord(TypedDict):
    """The fault for which something was isolated."""

    uid: str
    origin: str
    code: str
    #: L1 to L6.
    level: str
    message: str
    began_at: str
    cause: str
    remedy: str


class RepairEvidence(TypedDict):
    """All that a repair ticket needs; card, serial and chip are absent for a whole node."""

    isolation: str
    cluster: str
    cluster_uid: str
    node: str
    #: The finding of the last burn-in; empty: there was none.
    burn_in: str
    card: NotRequired[int]
    serial: NotRequired[str]
    chip: NotRequired[str]
    fault: NotRequired[FaultRecord]


class SuppressedDecisionsEvidence(TypedDict):
    """What the guard of health decisions suppressed."""

    place: str
    action: str
    decisions: int


def _repair_evidence(row: Isolation) -> RepairEvidence:
    evidence: RepairEvidence = {
        "isolation": row.uid,
        "cluster": row.node.cluster.name,
        "cluster_uid": row.node.cluster.uid,
        "node": row.node.name,
        "burn_in": row.evidence.get("words") or row.evidence.get("impossible") or "",
    }
    if row.card is not None:
        evidence["card"] = row.card.index
        evidence["serial"], evidence["chip"] = row.card.serial, row.card.chip
    if row.fault is not None:
        meaning = fault_meaning(row.fault.vendor, row.fault.code)
        evidence["fault"] = {
            "uid": row.fault.uid,
            "origin": row.fault.origin,
            "code": row.fault.code,
            "level": f"L{row.fault.level}",
            "message": row.fault.message,
            "began_at": row.fault.began_at.isoformat(),
            "cause": meaning.cause if meaning else "",
            "remedy": meaning.remedy if meaning else "",
        }
    return evidence


def decisions_notify(*, uids: Sequence[str]) -> int:
    """Notify of suppressed decisions, once for each cluster; return the number of clusters."""
    rows = Decision.objects.filter(uid__in=uids).select_related("node__cluster", "card")
    by_cluster: dict[Cluster, list[Decision]] = defaultdict(list)
    for row in rows.order_by("pk"):
        by_cluster[row.node.cluster].append(row)
    return sum(
        _notify_of_suppressed_decisions(cluster, held) for cluster, held in by_cluster.items()
    )


def _notify_of_suppressed_decisions(cluster: Cluster, held: Sequence[Decision]) -> bool:
    first = held[0]
    place = str(first.card or first.node)
    return notification_send(
        NotificationEvent(
            uid=first.uid,
            kind=NotificationKind.HEALTH_HELD_BACK,
            team=None,
            subject_uid=cluster.uid,
            subject_name=cluster.name,
            at=first.at,
            payload={
                "reason": first.reason,
                "evidence": SuppressedDecisionsEvidence(
                    place=place, action=first.action, decisions=len(held)
                ),
            },
        )
    )
