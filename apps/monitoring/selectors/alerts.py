"""Queries on alerts, silences, routes and deliveries, and the labels and messages of alerts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db.models import Count, Prefetch, Q, QuerySet
from django.template.defaultfilters import filesizeformat
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from apps.accounts.selectors import RequestUser
from apps.fleet.selectors import is_fleet_operator
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
from controlplane.domain.alerts.chat_messages import MessageSeverity, ReceiverMessage
from controlplane.domain.alerts.deliveries import DeliveryState
from controlplane.domain.alerts.notices import NoticeKind, NotificationRoute, Silence
from controlplane.domain.alerts.rules import (
    DEFAULTS,
    MEASURES,
    SECONDS,
    AlertRuleSpec,
    AlertSeverity,
    parse_matcher,
    parse_rule,
)
from controlplane.domain.rules.conditions import RuleState
from controlplane.domain.telemetry.metrics import MetricUnit
from controlplane.web.templatetags.ninefold import duration


def alert_rule_spec_of(row: AlertRule) -> AlertRuleSpec:
    """:raises RuleInvalid: if this version cannot read what another one kept."""
    return parse_rule({**row.document, "enabled": row.enabled})


def alert_group_key_of(labels: Mapping[str, str]) -> str:
    """The same for the same labels, whatever their order."""
    text = json.dumps(dict(sorted(labels.items())), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def silence_spec_of(row: AlertSilence) -> Silence:
    return Silence(
        matchers=tuple(map(parse_matcher, row.matchers)), began_at=row.began_at, ends_at=row.ends_at
    )


def alert_rules_visible(user: RequestUser) -> QuerySet[AlertRule]:
    """All rules, for operators of the fleet; with ``firing``, the number of firing alerts."""
    rows = AlertRule.objects.all() if is_fleet_operator(user) else AlertRule.objects.none()
    firing = Count("alerts", filter=Q(alerts__state=RuleState.FIRING))
    return rows.annotate(firing=firing).order_by("name")


def alert_groups_visible(user: RequestUser) -> QuerySet[AlertGroup]:
    """Groups, for operators of the fleet; newest first."""
    rows = AlertGroup.objects.all() if is_fleet_operator(user) else AlertGroup.objects.none()
    return rows.select_related("rule").order_by("-id")


def notices_of_group(group: AlertGroup) -> QuerySet[AlertNotice]:
    """Notices of the group, newest first, each with its deliveries."""
    ways = Prefetch("deliveries", queryset=AlertDelivery.objects.select_related("receiver"))
    return group.notices.prefetch_related(ways).order_by("-id")


def silences_visible(user: RequestUser) -> QuerySet[AlertSilence]:
    rows = AlertSilence.objects.all() if is_fleet_operator(user) else AlertSilence.objects.none()
    return rows.order_by("-id")


def active_silences(*, at: datetime) -> QuerySet[AlertSilence]:
    return AlertSilence.objects.filter(began_at__lte=at, ends_at__gt=at).order_by("ends_at")


def matching_silences_by_group(
    groups: Iterable[AlertGroup], *, at: datetime
) -> Mapping[int, list[AlertSilence]]:
    """For each episode by its primary key the ones that cover one of its alerts now."""
    by_key = {group.pk: group for group in groups}
    rows = list(active_silences(at=at)) if by_key else []
    if not rows:
        return {}
    labels: dict[int, list[dict[str, str]]] = {}
    firing = Alert.objects.filter(group__in=by_key, state=RuleState.FIRING)
    for key, own in firing.values_list("group_id", "labels"):
        group = by_key[key]
        beside = {"rule": group.rule_name, "severity": group.severity}
        labels.setdefault(key, []).append({**own, **beside})
    return {
        key: [row for row in rows if any(silence_spec_of(row).covers(one, at=at) for one in those)]
        for key, those in labels.items()
    }


def receivers_visible(user: RequestUser) -> QuerySet[AlertReceiver]:
    rows = AlertReceiver.objects.all() if is_fleet_operator(user) else AlertReceiver.objects.none()
    return rows.order_by("name")


def alert_routes_visible(user: RequestUser) -> QuerySet[AlertRoute]:
    rows = AlertRoute.objects.all() if is_fleet_operator(user) else AlertRoute.objects.none()
    return rows.prefetch_related("receivers").order_by("name")


def active_alert_routes() -> tuple[NotificationRoute, ...]:
    """Those that are not switched off, with their receivers that are not either."""
    receivers = Prefetch("receivers", queryset=AlertReceiver.objects.filter(active=True))
    rows = AlertRoute.objects.filter(enabled=True).prefetch_related(receivers)
    return tuple(
        NotificationRoute(
            severity=AlertSeverity(row.severity),
            matchers=tuple(map(parse_matcher, row.matchers)),
            receivers=frozenset(receiver.pk for receiver in row.receivers.all()),
        )
        for row in rows
    )


def alert_deliveries_due(*, at: datetime) -> list[AlertDelivery]:
    """The oldest pending delivery of each receiver, if it is due.

    A delivery that has to be retried blocks later ones of its receiver, so that "resolved" never precedes
    "firing".
    """
    oldest = (
        AlertDelivery.objects.filter(state=DeliveryState.WAITING, receiver__active=True)
        .select_related("notice__group", "receiver")
        .order_by("receiver_id", "id")
        .distinct("receiver_id")
    )
    return [delivery for delivery in oldest if delivery.next_try_at <= at]


MEASURE_LABELS: Mapping[str, str | Promise] = {
    "cards.utilization": _("utilization of a card"),
    "cards.memory_used": _("memory in use of a card"),
    "cards.memory_total": _("memory of a card"),
    "cards.temperature": _("temperature of a card"),
    "cards.memory_temperature": _("temperature of a card's memory"),
    "cards.power": _("power of a card"),
    "cards.clock": _("clock of a card"),
    "cards.ecc_corrected": _("corrected memory errors of a card"),
    "cards.ecc_uncorrected": _("uncorrected memory errors of a card"),
    "cards.link_errors": _("link errors of a card"),
    "cards.network_errors": _("network errors of a card"),
    "cards.health": _("health of a card (1 is healthy)"),
    "faults.level": _("severity level of an open fault"),
    "fleet.unknown_share": _("share of cards in state unknown"),
    "fleet.isolated_share": _("share of isolated cards"),
    "sources.silence": _("time since the last metrics of a metric source"),
    "decisions.held_back": _(
        "health actions suppressed by the limits of the health policy in the last hour"
    ),
    "clusters.silence": _("time since the last heartbeat of a cluster"),
    "controllers.unhealthy": _("health of a controller (1 is unhealthy)"),
    "controllers.lag": _("time by which a controller lags"),
    "product.disk_free": _("free share of a disk that Ninefold uses"),
    "product.outbox_age": _("age of the oldest pending outbox message"),
    "queues.wait": _("longest pending time in a queue"),
    "queues.waiting": _("pending resource claims in a queue"),
    "deployments.failure_share": _("share of failed requests to a deployment"),
}

_SHIPPED = {rule.name: rule.title for rule in DEFAULTS}

#: What contains the other comes first; the database keeps no order.
_PLACES = {
    name: place
    for place, name in enumerate(
        dict.fromkeys(label for measure in MEASURES.values() for label in measure.labels)
    )
}

SEVERITY_LABELS: Mapping[AlertSeverity, str | Promise] = {
    AlertSeverity.INFO: _("info"),
    AlertSeverity.WARNING: _("warning"),
    AlertSeverity.CRITICAL: _("critical"),
}


def alert_rule_title(rule_name: str, title: str) -> str:
    """The title, translated for default rules."""
    return gettext(title) if _SHIPPED.get(rule_name) == title else title


def formatted_sample_value(measure: str, value: float | None) -> str:
    """With its unit; a dash if it is unknown."""
    if value is None:
        return "–"
    unit = MEASURES[measure].unit if measure in MEASURES else MetricUnit.COUNT
    if unit == SECONDS:
        return str(duration(value))
    if unit == MetricUnit.BYTES:
        return str(filesizeformat(value))
    suffix = {
        MetricUnit.PERCENT: " %",
        MetricUnit.CELSIUS: " °C",
        MetricUnit.WATTS: " W",
        MetricUnit.HERTZ: " Hz",
    }
    return f"{value:,.4g}{suffix.get(MetricUnit(unit), '')}"


def displayed_condition(document: Mapping[str, Any]) -> str:
    """``> 90 °C``, of a rule or of a notice."""
    value = formatted_sample_value(document["measure"], document["threshold"])
    return f"{document['op']} {value}"


def format_alert_labels(labels: Mapping[str, str]) -> str:
    """``cluster=west node=a-1``: the same in every language, for that is how conditions are written."""
    named = sorted(labels.items(), key=lambda label: _PLACES.get(label[0], len(_PLACES)))
    return " ".join(f"{name}={value}" for name, value in named if value)


def alert_notice_message(notice: AlertNotice) -> ReceiverMessage:
    """In the language that is active now."""
    kind, group = NoticeKind(notice.kind), notice.group
    if group is None:
        return ReceiverMessage(
            title=gettext("Test alert"),
            lines=(
                gettext("Sent by %(name)s to test the receiver.") % {"name": notice.content["by"]},
            ),
            tone=MessageSeverity.INFO,
            link=f"{settings.NINEFOLD_PUBLIC_URL}{reverse('alerts')}",
            link_text=gettext("Open the alert list"),
        )
    title = alert_rule_title(group.rule_name, group.title)
    return ReceiverMessage(
        title=_notice_headline(kind, title, count=int(notice.content.get("count", 0))),
        lines=_notice_lines(notice),
        tone=MessageSeverity.GOOD
        if kind is NoticeKind.RESOLVED
        else _TONES[AlertSeverity(group.severity)],
        link=f"{settings.NINEFOLD_PUBLIC_URL}{reverse('alert', args=[group.uid])}",
        link_text=gettext("Open the alert"),
    )


_TONES = {
    AlertSeverity.INFO: MessageSeverity.INFO,
    AlertSeverity.WARNING: MessageSeverity.WARNING,
    AlertSeverity.CRITICAL: MessageSeverity.BAD,
}


def _notice_headline(kind: NoticeKind, title: str, *, count: int) -> str:
    if kind is NoticeKind.RESOLVED:
        return gettext("Resolved: %(title)s") % {"title": title}
    if kind is NoticeKind.MORE:
        text = ngettext(
            "%(title)s: %(count)d alert firing now", "%(title)s: %(count)d alerts firing now", count
        )
    elif kind is NoticeKind.REPEAT:
        text = ngettext(
            "%(title)s: %(count)d alert still firing",
            "%(title)s: %(count)d alerts still firing",
            count,
        )
    else:
        text = ngettext("%(title)s: %(count)d alert", "%(title)s: %(count)d alerts", count)
    return text % {"title": title, "count": count}


def _notice_lines(notice: AlertNotice) -> tuple[str, ...]:
    content, group = notice.content, notice.group
    lines = [] if group is None or not group.labels else [format_alert_labels(group.labels)]
    if notice.kind == NoticeKind.RESOLVED:
        most = int(content["most"])
        text = ngettext(
            "At most %(count)d alert fired at the same time",
            "At most %(count)d alerts fired at the same time",
            most,
        )
        return (*lines, text % {"count": most})
    measure = str(content["measure"])
    lines.append(f"{MEASURE_LABELS.get(measure, measure)} {displayed_condition(content)}")
    lines += [
        f"{format_alert_labels(one['labels']) or measure}: {formatted_sample_value(measure, one['value'])}"
        for one in content["alerts"]
    ]
    more = int(content["count"]) - len(content["alerts"])
    if more > 0:
        lines.append(gettext("and %(count)d more") % {"count": more})
    return tuple(lines)


def alert_webhook_body(notice: AlertNotice) -> bytes:
    """JSON of a notice as plain webhooks get it; the same for every try."""
    group = notice.group
    content: dict[str, Any] = {
        "id": notice.uid,
        "kind": f"alert.{notice.kind}",
        "at": notice.at.isoformat(),
        "rule": group.rule_name if group else None,
        "title": group.title if group else "test",
        "severity": group.severity if group else AlertSeverity.INFO.value,
        "labels": group.labels if group else {},
        "episode": group.uid if group else None,
        "began_at": group.began_at.isoformat() if group else None,
        "link": settings.NINEFOLD_PUBLIC_URL
        + (reverse("alert", args=[group.uid]) if group else reverse("alerts")),
        **({} if group is None else notice.content),
    }
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
