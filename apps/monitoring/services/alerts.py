"""Changes of alert rules, silences, receivers and routes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction

from apps.accounts.models import User
from apps.accounts.services import record_audit_entry
from apps.fleet.selectors import require_fleet_operator
from apps.monitoring.models import (
    AlertDelivery,
    AlertNotice,
    AlertReceiver,
    AlertRoute,
    AlertRule,
    AlertSilence,
)
from apps.monitoring.services.alert_evaluation import alert_rule_resolve_all
from apps.notifications.services.webhooks import DeliveryOutcome
from controlplane.domain.alerts.chat_messages import ReceiverKind
from controlplane.domain.alerts.deliveries import DeliveryState
from controlplane.domain.alerts.notices import LONGEST_SILENCE, NoticeKind
from controlplane.domain.alerts.rules import (
    DEFAULTS,
    MOST_MATCHERS,
    AlertRuleSpec,
    AlertSeverity,
    parse_matcher,
    parse_rule,
)
from controlplane.domain.common.reasons import FieldRefused
from controlplane.domain.outbound.egress import EgressRefused
from controlplane.outbox.messages import publish_message
from controlplane.persistence.advisory_locks import AdvisoryLock, lock_in_transaction
from controlplane.persistence.encryption import encrypt
from controlplane.web.outbound_http import configured_outbound

MOST_RULES = 200
_LONGEST_REASON = 300


class AlertSettingsRefused(FieldRefused):
    """It cannot be like that; ``field`` is what is wrong."""


@transaction.atomic
def default_alert_rules_sync(*, at: datetime) -> int:
    """Add default rules and update those that were not edited; return the number of changes."""
    existing = {row.name: row for row in AlertRule.objects.filter(shipped=True)}
    changed = 0
    for rule in DEFAULTS:
        row = existing.get(rule.name)
        if row is not None and (row.changed_by_name or row.document == rule.as_json()):
            continue
        _, created = AlertRule.objects.get_or_create(
            name=rule.name, defaults={**_rule_columns(rule), "shipped": True, "changed_at": at}
        )
        if row is not None and not created:
            AlertRule.objects.filter(pk=row.pk).update(**_rule_columns(rule), changed_at=at)
        changed += created or row is not None
    return changed


def _rule_columns(rule: AlertRuleSpec) -> dict[str, Any]:
    return {
        "title": rule.title,
        "severity": rule.severity.value,
        "enabled": rule.enabled,
        "document": rule.as_json(),
    }


def alert_rule_create(*, document: Mapping[str, Any], actor: User, at: datetime) -> AlertRule:
    """:raises PermissionRefused: unless ``actor`` operates the fleet.
    :raises RuleInvalid: if no rule can be like that.
    :raises AlertSettingsRefused: if there is one of that name, or too many.
    """
    require_fleet_operator(actor)
    rule = parse_rule(document)
    if AlertRule.objects.count() >= MOST_RULES:
        raise AlertSettingsRefused(
            "alert_rule.limit.reached",
            "the maximum of {limit} rules is reached; delete one that is no longer needed",
            limit=MOST_RULES,
            field="name",
        )
    try:
        with transaction.atomic():
            row = AlertRule.objects.create(
                name=rule.name,
                **_rule_columns(rule),
                changed_by_name=actor.username,
                changed_at=at,
            )
            _audit_rule(row, actor=actor, action="alert_rule.create")
    except IntegrityError:
        raise AlertSettingsRefused(
            "alert_rule.name.already_exists",
            "a rule named {name} already exists; choose another name",
            name=rule.name,
            field="name",
        ) from None
    return row


@transaction.atomic
def alert_rule_change(
    *, rule: AlertRule, document: Mapping[str, Any], actor: User, at: datetime
) -> AlertRule:
    """Change the fields that the document names, except the name. Alerts are evaluated again in the next run.

    :raises PermissionRefused: unless ``actor`` operates the fleet.
    :raises RuleInvalid: if the rule is not valid.
    """
    require_fleet_operator(actor)
    row = AlertRule.objects.select_for_update(no_key=True).get(pk=rule.pk)
    changed = parse_rule({**row.document, "enabled": row.enabled, **document, "name": row.name})
    for name, value in _rule_columns(changed).items():
        setattr(row, name, value)
    row.changed_by_name, row.changed_at = actor.username, at
    row.save(update_fields=[*_rule_columns(changed), "changed_by_name", "changed_at"])
    _audit_rule(row, actor=actor, action="alert_rule.change")
    return row


@transaction.atomic
def alert_rule_delete(*, rule: AlertRule, actor: User, at: datetime) -> None:
    """Delete the rule. Its firing alerts resolve and are notified as resolved; the history is kept.

    :raises PermissionRefused: unless ``actor`` operates the fleet.
    :raises AlertSettingsRefused: if it is a default rule.
    """
    require_fleet_operator(actor)
    if rule.shipped:
        raise AlertSettingsRefused(
            "alert_rule.deletion.built_in",
            "rule {rule} is built in and cannot be deleted; disable it instead",
            rule=rule.name,
            field="name",
        )
    alert_rule_resolve_all(rule=rule, at=at)
    _audit_rule(rule, actor=actor, action="alert_rule.delete")
    rule.delete()


def _audit_rule(rule: AlertRule, *, actor: User, action: str) -> None:
    record_audit_entry(rule, actor=actor, action=action, document=rule.document)


@transaction.atomic
def silence_create(
    *,
    name: str,
    matchers: Sequence[str],
    ends_at: datetime,
    reason: str,
    actor: User,
    at: datetime,
) -> AlertSilence:
    """Suppress notifications of alerts that match all matchers until the end of the silence.

    :raises PermissionRefused: unless ``actor`` operates the fleet.
    :raises AlertSettingsRefused: if a field is not valid, or a silence that has not ended has the name.
    """
    require_fleet_operator(actor)
    name = name.strip()
    if not name:
        raise AlertSettingsRefused("name.value.missing", "enter a name", field="name")
    matchers = _checked_matchers(matchers)
    _check_silence_end(ends_at, at=at)
    reason = _checked_silence_reason(reason)
    lock_in_transaction(AdvisoryLock.NAME_SILENCE)
    if AlertSilence.objects.filter(name=name, ends_at__gt=at).exists():
        raise AlertSettingsRefused(
            "silence.name.already_exists",
            "a silence named {name} has not expired yet; choose another name",
            name=name,
            field="name",
        )
    silence = AlertSilence.objects.create(
        name=name,
        matchers=matchers,
        reason=reason,
        began_at=at,
        ends_at=ends_at,
        created_by_name=actor.username,
    )
    record_audit_entry(
        silence,
        actor=actor,
        action="alert_silence.begin",
        matchers=silence.matchers,
        until=silence.ends_at.isoformat(),
        reason=silence.reason,
    )
    return silence


@transaction.atomic
def silence_change(
    *, silence: AlertSilence, changes: Mapping[str, Any], actor: User, at: datetime
) -> AlertSilence:
    """Change ``matchers``, ``ends_at`` or ``reason`` of a silence that has not ended; equal values change nothing.

    :raises PermissionRefused: unless ``actor`` operates the fleet.
    :raises AlertSettingsRefused: if a field is not valid, or the silence has expired.
    """
    require_fleet_operator(actor)
    row = AlertSilence.objects.select_for_update(no_key=True).get(pk=silence.pk)
    wanted = dict(changes)
    if "matchers" in wanted:
        wanted["matchers"] = _checked_matchers(wanted["matchers"])
    if "reason" in wanted:
        wanted["reason"] = _checked_silence_reason(wanted["reason"])
    changed = {name: value for name, value in wanted.items() if getattr(row, name) != value}
    if not changed:
        return row
    if row.ends_at <= at:
        raise AlertSettingsRefused(
            "silence.change.expired",
            "silence {name} has expired and cannot be changed; create another one",
            name=row.name,
            field="ends_at",
        )
    if "ends_at" in changed:
        _check_silence_end(changed["ends_at"], at=at)
    for name, value in changed.items():
        setattr(row, name, value)
    row.save(update_fields=list(changed))
    record_audit_entry(
        row,
        actor=actor,
        action="alert_silence.change",
        matchers=row.matchers,
        until=row.ends_at.isoformat(),
        reason=row.reason,
    )
    return row


def _checked_matchers(matchers: Sequence[str]) -> list[str]:
    """The matchers of a silence as they are stored.

    :raises AlertSettingsRefused: if one is not valid, or there are none or too many.
    """
    if not matchers or len(matchers) > MOST_MATCHERS:
        raise AlertSettingsRefused(
            "silence.matchers.invalid_count",
            "enter 1 to {limit} matchers, such as rule=card-hot",
            limit=MOST_MATCHERS,
            field="matchers",
        )
    try:
        return [str(parse_matcher(text)) for text in matchers]
    except ValueError as error:
        raise AlertSettingsRefused(str(error), field="matchers") from None


def _check_silence_end(ends_at: datetime, *, at: datetime) -> None:
    """:raises AlertSettingsRefused: unless it is within :data:`LONGEST_SILENCE` from now."""
    if ends_at <= at:
        raise AlertSettingsRefused(
            "silence.end.past",
            "the end of a silence must be in the future, got {ends_at}",
            ends_at=ends_at.isoformat(),
            field="ends_at",
        )
    if ends_at > at + LONGEST_SILENCE:
        raise AlertSettingsRefused(
            "silence.end.too_late",
            "a silence must end within {days} days from now; choose an earlier time",
            days=LONGEST_SILENCE.days,
            field="ends_at",
        )


def _checked_silence_reason(reason: str) -> str:
    """The reason without surrounding white space.

    :raises AlertSettingsRefused: if it is empty or too long.
    """
    if not reason.strip() or len(reason) > _LONGEST_REASON:
        raise AlertSettingsRefused(
            "silence.reason.invalid_length",
            "enter a reason of 1 to {limit} characters; it is stored in the history",
            limit=_LONGEST_REASON,
            field="reason",
        )
    return reason.strip()


@transaction.atomic
def silence_end(*, silence: AlertSilence, actor: User, at: datetime) -> None:
    """Before its time; one that is over stays as it is.

    :raises PermissionRefused: unless ``actor`` operates the fleet.
    """
    require_fleet_operator(actor)
    ended = AlertSilence.objects.filter(pk=silence.pk, ends_at__gt=at).update(
        ends_at=at, ended_by_name=actor.username
    )
    if ended:
        record_audit_entry(silence, actor=actor, action="alert_silence.end")


MOST_RECEIVERS, MOST_ROUTES, MOST_ADDRESSES = 50, 50, 20


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertReceiverRequest:
    """The requested settings of a receiver."""

    name: str
    kind: ReceiverKind
    url: str = ""
    secret: str = ""
    addresses: tuple[str, ...] = ()
    language: str = ""
    active: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertRouteRequest:
    """The requested settings of a route."""

    name: str
    severity: AlertSeverity
    matchers: tuple[str, ...] = ()
    receivers: Sequence[AlertReceiver] = ()
    enabled: bool = True


def alert_receiver_create(*, request: AlertReceiverRequest, actor: User) -> AlertReceiver:
    """:raises PermissionRefused: unless ``actor`` operates the fleet.
    :raises AlertSettingsRefused: if something is wrong with it.
    """
    require_fleet_operator(actor)
    _check_receiver(request)
    if AlertReceiver.objects.count() >= MOST_RECEIVERS:
        raise AlertSettingsRefused(
            "receiver.limit.reached",
            "the maximum of {limit} receivers is reached; delete one that is no longer needed",
            limit=MOST_RECEIVERS,
            field="name",
        )
    try:
        with transaction.atomic():
            receiver = AlertReceiver.objects.create(
                name=request.name.strip(),
                kind=request.kind,
                url=encrypt(request.url.encode()) if request.url else None,
                secret=encrypt(request.secret.encode()) if request.secret else None,
                addresses=list(request.addresses),
                language=request.language,
                active=request.active,
                created_by_name=actor.username,
            )
            _audit_receiver(receiver, actor=actor, action="alert_receiver.create")
    except IntegrityError:
        raise AlertSettingsRefused(
            "receiver.name.already_exists",
            "a receiver named {name} already exists; choose another name",
            name=request.name.strip(),
            field="name",
        ) from None
    return receiver


def _check_receiver(request: AlertReceiverRequest) -> None:
    if not request.name.strip():
        raise AlertSettingsRefused("name.value.missing", "enter a name", field="name")
    if request.kind is not ReceiverKind.EMAIL:
        if not request.url:
            raise AlertSettingsRefused(
                "receiver.url.missing", "enter the URL of the receiver", field="url"
            )
        try:
            configured_outbound().check(request.url)
        except EgressRefused as refusal:
            raise AlertSettingsRefused(str(refusal), field="url") from None
        return
    if not request.addresses or len(request.addresses) > MOST_ADDRESSES:
        raise AlertSettingsRefused(
            "receiver.addresses.invalid_count",
            "enter 1 to {limit} e-mail addresses",
            limit=MOST_ADDRESSES,
            field="addresses",
        )
    for address in request.addresses:
        try:
            validate_email(address)
        except ValidationError:
            raise AlertSettingsRefused(
                "receiver.address.invalid",
                "{address} is not an e-mail address; write name@example.com",
                address=repr(address[:80]),
                field="addresses",
            ) from None


@transaction.atomic
def alert_receiver_switch(*, receiver: AlertReceiver, actor: User, active: bool) -> None:
    """Pause or resume the receiver. While it is paused, queued deliveries wait and no new ones are created.

    :raises PermissionRefused: unless ``actor`` operates the fleet.
    """
    require_fleet_operator(actor)
    receiver.active = active
    receiver.save(update_fields=["active"])
    action = "alert_receiver.resume" if active else "alert_receiver.pause"
    _audit_receiver(receiver, actor=actor, action=action)


@transaction.atomic
def alert_receiver_delete(*, receiver: AlertReceiver, actor: User) -> None:
    """With everything that is on its way to it.

    :raises PermissionRefused: unless ``actor`` operates the fleet.
    """
    require_fleet_operator(actor)
    _audit_receiver(receiver, actor=actor, action="alert_receiver.delete")
    receiver.delete()


@transaction.atomic
def alert_receiver_test(*, receiver: AlertReceiver, actor: User, at: datetime) -> AlertDelivery:
    """Send a test message immediately, without retries.

    :raises PermissionRefused: unless ``actor`` operates the fleet.
    :raises AlertSettingsRefused: while it is paused.
    """
    require_fleet_operator(actor)
    if not receiver.active:
        raise AlertSettingsRefused(
            "notification.test.paused",
            "notifications are paused; resume them before the test",
            field="active",
        )
    notice = AlertNotice.objects.create(
        group=None, kind=NoticeKind.TEST, content={"by": actor.username}, at=at
    )
    delivery = AlertDelivery.objects.create(receiver=receiver, notice=notice, next_try_at=at)
    publish_message("outbound.due", event_uid=notice.uid)
    return delivery


def alert_route_create(*, request: AlertRouteRequest, actor: User) -> AlertRoute:
    """:raises PermissionRefused: unless ``actor`` operates the fleet.
    :raises AlertSettingsRefused: if something is wrong with it.
    """
    require_fleet_operator(actor)
    if AlertRoute.objects.count() >= MOST_ROUTES:
        raise AlertSettingsRefused(
            "notification_route.limit.reached",
            "the maximum of {limit} routes is reached; delete one that is no longer needed",
            limit=MOST_ROUTES,
            field="name",
        )
    return _route_save(AlertRoute(), request=request, actor=actor, action="alert_route.create")


def alert_route_change(*, route: AlertRoute, request: AlertRouteRequest, actor: User) -> AlertRoute:
    """:raises PermissionRefused: unless ``actor`` operates the fleet.
    :raises AlertSettingsRefused: if something is wrong with it.
    """
    require_fleet_operator(actor)
    return _route_save(route, request=request, actor=actor, action="alert_route.change")


def _route_save(
    route: AlertRoute, *, request: AlertRouteRequest, actor: User, action: str
) -> AlertRoute:
    if not request.name.strip():
        raise AlertSettingsRefused("name.value.missing", "enter a name", field="name")
    if not request.receivers:
        raise AlertSettingsRefused(
            "notification_route.receivers.missing",
            "choose at least one receiver",
            field="receivers",
        )
    if len(request.matchers) > MOST_MATCHERS:
        raise AlertSettingsRefused(
            "notification_route.matchers.too_many",
            "enter at most {limit} matchers",
            limit=MOST_MATCHERS,
            field="matchers",
        )
    try:
        matchers = [str(parse_matcher(text)) for text in request.matchers]
    except ValueError as error:
        raise AlertSettingsRefused(str(error), field="matchers") from None
    route.name, route.severity = request.name.strip(), request.severity
    route.matchers, route.enabled = matchers, request.enabled
    try:
        with transaction.atomic():
            route.save()
            route.receivers.set(request.receivers)
            record_audit_entry(
                route,
                actor=actor,
                action=action,
                severity=route.severity,
                matchers=route.matchers,
                receivers=[receiver.name for receiver in request.receivers],
                enabled=route.enabled,
            )
    except IntegrityError:
        raise AlertSettingsRefused(
            "notification_route.name.already_exists",
            "a route named {name} already exists; choose another name",
            name=request.name.strip(),
            field="name",
        ) from None
    return route


@transaction.atomic
def alert_route_delete(*, route: AlertRoute, actor: User) -> None:
    """:raises PermissionRefused: unless ``actor`` operates the fleet."""
    require_fleet_operator(actor)
    record_audit_entry(route, actor=actor, action="alert_route.delete")
    route.delete()


def _audit_receiver(receiver: AlertReceiver, *, actor: User, action: str) -> None:
    record_audit_entry(receiver, actor=actor, action=action, kind=receiver.kind)


@transaction.atomic
def alert_delivery_record(
    *, delivery: AlertDelivery, outcome: DeliveryOutcome, spread: float
) -> None:
    """Record the result of an attempt and schedule the next one, if any.

    ``spread`` is a random number from 0 to 1. If the delivery was deleted or completed meanwhile, nothing is
    recorded.
    """
    row = AlertDelivery.objects.select_for_update(no_key=True).filter(pk=delivery.pk).first()
    if row is None or row.state != DeliveryState.WAITING:
        return
    row.status, row.error = outcome.status, outcome.error
    trial = delivery.notice.kind == NoticeKind.TEST
    row.record_attempt(
        error=outcome.error, at=outcome.at, spread=spread, final=outcome.final or trial
    )
    row.save()
    AlertReceiver.objects.filter(pk=row.receiver_id).update(
        tried_at=outcome.at, last_error=outcome.error
    )
