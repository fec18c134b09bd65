"""Evaluation of one alert rule: its samples become alerts, groups and notices, in one transaction.

An evaluation that is interrupted leaves nothing, and the next one makes the same changes. Sent notices are
stored with the changes that caused them, so a restart or a repeated evaluation sends none twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from typing_extensions import TypedDict

from apps.monitoring.models import (
    Alert,
    AlertDelivery,
    AlertGroup,
    AlertNotice,
    AlertRule,
    AlertSilence,
)
from apps.monitoring.selectors.alerts import (
    active_alert_routes,
    active_silences,
    alert_group_key_of,
    alert_rule_spec_of,
    silence_spec_of,
)
from controlplane.domain.alerts.notices import (
    FiringMember,
    NoticeKind,
    NotificationEpisode,
    Silence,
    notice_due,
    receivers_of,
)
from controlplane.domain.alerts.rules import AlertRuleSpec, AlertSample, AlertSeverity
from controlplane.domain.rules.conditions import RuleProgress, RuleState, next_progress
from controlplane.outbox.messages import publish_message
from controlplane.persistence.bulk_writes import bulk_update_rows

ALERT_RETENTION = timedelta(days=90)
#: Of the alerts of a notice, so many are named.
MOST_NAMED = 10
_PROGRESS = tuple(one.name for one in fields(RuleProgress))


@dataclass(kw_only=True)
class _AlertEvaluation:
    """The context of one evaluation."""

    row: AlertRule
    rule: AlertRuleSpec
    at: datetime
    silences: Sequence[Silence]
    #: Alerts that were or are pending or firing, by key; and those of them that ended.
    alerts: dict[str, Alert] = field(default_factory=dict)
    notices: int = 0

    def silenced(self, alert: Alert) -> bool:
        labels = {
            **alert.labels,
            "rule": self.rule.name,
            "severity": self.rule.severity.value,
        }
        return any(silence.covers(labels, at=self.at) for silence in self.silences)


@transaction.atomic
def alert_rule_evaluate(*, rule: AlertRule, samples: Iterable[AlertSample], at: datetime) -> int:
    """Apply the state changes that follow from the samples; return the number of notices.

    ``rule`` is the row for which the samples were read: if it was changed since, nothing is done. If it is
    disabled, all of its alerts resolve. An evaluation that is older than the last one changes nothing.
    """
    row = AlertRule.objects.select_for_update(no_key=True).filter(pk=rule.pk).first()
    changed = row is None or (row.document, row.enabled) != (rule.document, rule.enabled)
    if row is None or changed or (row.evaluated_at is not None and row.evaluated_at > at):
        return 0
    turn = _AlertEvaluation(
        row=row,
        rule=alert_rule_spec_of(row),
        at=at,
        silences=[silence_spec_of(one) for one in active_silences(at=at)],
    )
    _update_alert_states(turn, samples if row.enabled else ())
    _notify_alert_groups(turn)
    AlertRule.objects.filter(pk=row.pk).update(evaluated_at=at, error="")
    return turn.notices


@transaction.atomic
def alert_rule_resolve_all(*, rule: AlertRule, at: datetime) -> None:
    """Resolve all alerts of the rule and notify, before it is deleted."""
    row = AlertRule.objects.select_for_update(no_key=True).get(pk=rule.pk)
    turn = _AlertEvaluation(row=row, rule=alert_rule_spec_of(row), at=at, silences=())
    _update_alert_states(turn, (), keeps=timedelta())
    _notify_alert_groups(turn)


def alert_rule_record_failure(*, rule: AlertRule, reason: str) -> None:
    """Record that the samples could not be read; states stay unchanged."""
    AlertRule.objects.filter(pk=rule.pk).update(error=reason)


def alerts_prune(*, at: datetime) -> int:
    """Delete groups and silences that ended long ago; return the number of groups."""
    AlertSilence.objects.filter(ends_at__lt=at - ALERT_RETENTION).delete()
    AlertNotice.objects.filter(group=None, at__lt=at - ALERT_RETENTION).delete()
    _, deleted = AlertGroup.objects.filter(ended_at__lt=at - ALERT_RETENTION).delete()
    return deleted.get("monitoring.AlertGroup", 0)


def _update_alert_states(
    turn: _AlertEvaluation, samples: Iterable[AlertSample], *, keeps: timedelta | None = None
) -> None:
    standing = Alert.objects.filter(rule=turn.row).exclude(state=RuleState.RESOLVED)
    turn.alerts = {alert.key: alert for alert in standing.select_related("group")}
    seen = {alert_group_key_of(sample.labels): sample for sample in samples}
    created, changed, gone = [], [], []
    for key in [*turn.alerts, *(key for key in seen if key not in turn.alerts)]:
        alert, sample = turn.alerts.get(key), seen.get(key)
        before = None if alert is None else _alert_progress_of(alert)
        after = next_progress(
            before,
            holds=False if sample is None else turn.rule.holds(sample.value),
            at=turn.at,
            lasts=turn.rule.lasts,
            keeps=turn.rule.keeps if turn.row.enabled and keeps is None else timedelta(),
        )
        if alert is None and after is not None and sample is not None:
            alert = Alert(rule=turn.row, key=key, labels=dict(sample.labels), href=sample.href)
            turn.alerts[key] = alert
            created.append(alert)
        elif alert is not None and after is None:
            gone.append(alert.pk)
            del turn.alerts[key]
        elif alert is not None and after != before:
            changed.append(alert)
        if alert is not None and after is not None:
            _apply_alert_progress(alert, after, sample)
    _assign_alert_groups(turn)
    Alert.objects.filter(pk__in=gone).delete()
    Alert.objects.bulk_create(created)
    bulk_update_rows(changed, (*_PROGRESS, "value", "group"))


def _alert_progress_of(alert: Alert) -> RuleProgress:
    stored: dict[str, Any] = {name: getattr(alert, name) for name in _PROGRESS}
    return RuleProgress(**{**stored, "state": RuleState(alert.state)})


def _apply_alert_progress(alert: Alert, after: RuleProgress, sample: AlertSample | None) -> None:
    for name in _PROGRESS:
        setattr(alert, name, getattr(after, name))
    if sample is not None and sample.value is not None:
        alert.value = sample.value


def _assign_alert_groups(turn: _AlertEvaluation) -> None:
    """Give each alert that has begun to fire its episode."""
    groups = {group.key: group for group in AlertGroup.objects.filter(rule=turn.row, ended_at=None)}
    for alert in turn.alerts.values():
        if alert.state != RuleState.FIRING or alert.group_id is not None:
            continue
        labels = turn.rule.group_labels(alert.labels)
        key = alert_group_key_of(labels)
        if key not in groups:
            groups[key] = AlertGroup.objects.create(
                rule=turn.row,
                rule_name=turn.row.name,
                title=turn.rule.title,
                severity=turn.rule.severity,
                labels=labels,
                key=key,
                began_at=turn.at,
            )
        alert.group = groups[key]


def _notify_alert_groups(turn: _AlertEvaluation) -> None:
    """Update each open group: its counts, due notices, and whether it has ended."""
    for group in AlertGroup.objects.filter(rule=turn.row, ended_at=None).order_by("id"):
        firing = [
            alert
            for alert in turn.alerts.values()
            if alert.group_id == group.pk and alert.state == RuleState.FIRING
        ]
        members = {
            alert.key: FiringMember(
                silenced=turn.silenced(alert), notified=alert.notified_at is not None
            )
            for alert in firing
        }
        due = notice_due(
            NotificationEpisode(notified_at=group.notified_at, repeat=turn.rule.repeat),
            members.values(),
            at=turn.at,
        )
        group.count = len(firing)
        group.most = max(group.most, group.count)
        group.silenced = sum(member.silenced for member in members.values())
        if due is not None:
            unsilenced = [alert for alert in firing if not members[alert.key].silenced]
            _notify_group(turn, group, due, unsilenced)
        if not firing:
            group.ended_at = turn.at
        group.save(update_fields=["count", "most", "silenced", "notified_at", "ended_at"])


def _notify_group(
    turn: _AlertEvaluation, group: AlertGroup, kind: NoticeKind, unsilenced: Sequence[Alert]
) -> None:
    notice = AlertNotice.objects.create(
        group=group,
        number=group.notices.count() + 1,
        kind=kind,
        content=_notice_content(turn, group, unsilenced),
        at=turn.at,
    )
    if kind is NoticeKind.RESOLVED:
        earlier = AlertDelivery.objects.filter(notice__group=group, receiver__active=True)
        receivers = set(earlier.values_list("receiver_id", flat=True))
    else:
        labels = {**group.labels, "rule": group.rule_name}
        severity = AlertSeverity(group.severity)
        receivers = set(receivers_of(active_alert_routes(), labels, severity=severity))
        Alert.objects.filter(pk__in=[alert.pk for alert in unsilenced]).update(notified_at=turn.at)
        group.notified_at = turn.at
    AlertDelivery.objects.bulk_create(
        AlertDelivery(receiver_id=key, notice=notice, next_try_at=turn.at)
        for key in sorted(receivers)
    )
    turn.notices += 1
    if receivers:
        publish_message("outbound.due", event_uid=notice.uid)


class NoticeAlert(TypedDict):
    """An alert that a notice names."""

    labels: Mapping[str, str]
    value: float | None
    since: str
    #: Path of the page of the object; empty: it has none.
    link: str


class NoticeContent(TypedDict):
    """What a notice says of its alerts."""

    count: int
    #: The largest number at the same time.
    most: int
    measure: str
    op: str
    threshold: float
    #: Those that began first.
    alerts: list[NoticeAlert]


def _notice_content(
    turn: _AlertEvaluation, group: AlertGroup, unsilenced: Sequence[Alert]
) -> NoticeContent:
    named = sorted(unsilenced, key=lambda alert: (alert.began_at, sorted(alert.labels.items())))[
        :MOST_NAMED
    ]
    return {
        "count": len(unsilenced),
        "most": group.most,
        "measure": turn.rule.measure,
        "op": turn.rule.op.value,
        "threshold": turn.rule.threshold,
        "alerts": [
            {
                "labels": alert.labels,
                "value": alert.value,
                "since": alert.began_at.isoformat(),
                "link": alert.href,
            }
            for alert in named
        ],
    }
