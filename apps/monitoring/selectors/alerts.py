"""Questions about alerts: what fires, who hears of it, what nobody wants to hear of."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from datetime import datetime

from django.db.models import Count, Prefetch, Q, QuerySet

from apps.accounts.selectors import RequestUser
from apps.fleet.selectors import operates
from apps.monitoring.models import (
    Alert,
    AlertDelivery,
    AlertGroup,
    AlertNotice,
    AlertReceiver,
    AlertRoute,
    AlertRule,
    AlertSilence,
)
from controlplane.domain.alerts.groups import Route, Silence
from controlplane.domain.alerts.rules import Rule, Severity, matcher_read, rule_read
from controlplane.domain.alerts.states import AlertState
from controlplane.domain.deliveries import DeliveryState


def rule_of(row: AlertRule) -> Rule:
    """:raises RuleInvalid: if this version cannot read what another one kept."""
    return rule_read({**row.document, "enabled": row.enabled})


def key_of(labels: Mapping[str, str]) -> str:
    """The same for the same labels, whatever their order."""
    text = json.dumps(dict(sorted(labels.items())), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def silence_of(row: AlertSilence) -> Silence:
    return Silence(
        matchers=tuple(map(matcher_read, row.matchers)), began_at=row.began_at, ends_at=row.ends_at
    )


def rules_visible(user: RequestUser) -> QuerySet[AlertRule]:
    """All of them, for whoever operates the fleet; with ``firing``, how many alerts each has."""
    rows = AlertRule.objects.all() if operates(user) else AlertRule.objects.none()
    firing = Count("alerts", filter=Q(alerts__state=AlertState.FIRING))
    return rows.annotate(firing=firing).order_by("name")


def groups_visible(user: RequestUser) -> QuerySet[AlertGroup]:
    """Episodes, for whoever operates the fleet; the newest first."""
    rows = AlertGroup.objects.all() if operates(user) else AlertGroup.objects.none()
    return rows.select_related("rule").order_by("-id")


def notices_of(group: AlertGroup) -> QuerySet[AlertNotice]:
    """What was told in that episode, the newest first, each with where it went."""
    ways = Prefetch("deliveries", queryset=AlertDelivery.objects.select_related("receiver"))
    return group.notices.prefetch_related(ways).order_by("-id")


def silences_visible(user: RequestUser) -> QuerySet[AlertSilence]:
    rows = AlertSilence.objects.all() if operates(user) else AlertSilence.objects.none()
    return rows.order_by("-id")


def silences_now(*, at: datetime) -> QuerySet[AlertSilence]:
    return AlertSilence.objects.filter(began_at__lte=at, ends_at__gt=at).order_by("ends_at")


def silences_over(
    groups: Iterable[AlertGroup], *, at: datetime
) -> Mapping[int, list[AlertSilence]]:
    """For each episode by its primary key the ones that cover one of its alerts now."""
    by_key = {group.pk: group for group in groups}
    rows = list(silences_now(at=at)) if by_key else []
    if not rows:
        return {}
    labels: dict[int, list[dict[str, str]]] = {}
    firing = Alert.objects.filter(group__in=by_key, state=AlertState.FIRING)
    for key, own in firing.values_list("group_id", "labels"):
        group = by_key[key]
        beside = {"rule": group.rule_name, "severity": group.severity}
        labels.setdefault(key, []).append({**own, **beside})
    return {
        key: [row for row in rows if any(silence_of(row).covers(one, at=at) for one in those)]
        for key, those in labels.items()
    }


def receivers_visible(user: RequestUser) -> QuerySet[AlertReceiver]:
    rows = AlertReceiver.objects.all() if operates(user) else AlertReceiver.objects.none()
    return rows.order_by("name")


def routes_visible(user: RequestUser) -> QuerySet[AlertRoute]:
    rows = AlertRoute.objects.all() if operates(user) else AlertRoute.objects.none()
    return rows.prefetch_related("receivers").order_by("name")


def routes_now() -> tuple[Route, ...]:
    """Those that are not switched off, with their receivers that are not either."""
    receivers = Prefetch("receivers", queryset=AlertReceiver.objects.filter(active=True))
    rows = AlertRoute.objects.filter(enabled=True).prefetch_related(receivers)
    return tuple(
        Route(
            severity=Severity(row.severity),
            matchers=tuple(map(matcher_read, row.matchers)),
            receivers=frozenset(receiver.pk for receiver in row.receivers.all()),
        )
        for row in rows
    )


def deliveries_due(*, at: datetime) -> list[AlertDelivery]:
    """The oldest of each receiver that waits, where its time has come.

    One that must be tried again holds back those behind it: an end never overtakes its beginning.
    """
    oldest = (
        AlertDelivery.objects.filter(state=DeliveryState.WAITING, receiver__active=True)
        .select_related("notice__group", "receiver")
        .order_by("receiver_id", "id")
        .distinct("receiver_id")
    )
    return [delivery for delivery in oldest if delivery.next_try_at <= at]
