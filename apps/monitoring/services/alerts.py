"""What people do about alerts: rules changed, silences begun and ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction

from apps.accounts.models import User
from apps.accounts.services import audit
from apps.fleet.selectors import require_operator
from apps.monitoring.models import AlertRule, AlertSilence
from apps.monitoring.services.alerts_turns import rule_end
from controlplane.domain.alerts.defaults import DEFAULTS
from controlplane.domain.alerts.groups import LONGEST_SILENCE
from controlplane.domain.alerts.rules import MOST_MATCHERS, Rule, matcher_read, rule_read

MOST_RULES = 200
_LONGEST_REASON = 300


class AlertRefused(Exception):
    """It cannot be like that; ``field`` is what is wrong."""

    def __init__(self, message: str, *, field: str) -> None:
        super().__init__(message)
        self.field = field


@transaction.atomic
def rules_ship(*, at: datetime) -> int:
    """Add the rules that the product comes with, and renew those that nobody touched; say how many."""
    kept = {row.name: row for row in AlertRule.objects.filter(shipped=True)}
    changed = 0
    for rule in DEFAULTS:
        row = kept.get(rule.name)
        if row is not None and (row.changed_by_name or row.document == rule.as_json()):
            continue
        _, made = AlertRule.objects.get_or_create(
            name=rule.name, defaults={**_columns(rule), "shipped": True, "changed_at": at}
        )
        if row is not None and not made:
            AlertRule.objects.filter(pk=row.pk).update(**_columns(rule), changed_at=at)
        changed += made or row is not None
    return changed


def _columns(rule: Rule) -> dict[str, Any]:
    return {
        "title": rule.title,
        "severity": rule.severity.value,
        "enabled": rule.enabled,
        "document": rule.as_json(),
    }


def rule_create(*, document: Mapping[str, Any], actor: User, at: datetime) -> AlertRule:
    """:raises PermissionRefused: unless ``actor`` operates the fleet.
    :raises RuleInvalid: if no rule can be like that.
    :raises AlertRefused: if there is one of that name, or too many.
    """
    require_operator(actor)
    rule = rule_read(document)
    if AlertRule.objects.count() >= MOST_RULES:
        message = f"there are {MOST_RULES} rules already; delete one that is no longer needed"
        raise AlertRefused(message, field="name")
    try:
        with transaction.atomic():
            row = AlertRule.objects.create(
                name=rule.name,
                **_columns(rule),
                changed_by_name=actor.username,
                changed_at=at,
            )
            _audit(row, actor=actor, action="alert_rule.create")
    except IntegrityError:
        message = f"there is a rule named {rule.name} already; choose another name"
        raise AlertRefused(message, field="name") from None
    return row


@transaction.atomic
def rule_change(
    *, rule: AlertRule, document: Mapping[str, Any], actor: User, at: datetime
) -> AlertRule:
    """What the document does not say stays; its name always does. What fires is judged anew in the next turn.

    :raises PermissionRefused: unless ``actor`` operates the fleet.
    :raises RuleInvalid: if no rule can be like that.
    """
    require_operator(actor)
    row = AlertRule.objects.select_for_update(no_key=True).get(pk=rule.pk)
    changed = rule_read({**row.document, "enabled": row.enabled, **document, "name": row.name})
    for name, value in _columns(changed).items():
        setattr(row, name, value)
    row.changed_by_name, row.changed_at = actor.username, at
    row.save(update_fields=[*_columns(changed), "changed_by_name", "changed_at"])
    _audit(row, actor=actor, action="alert_rule.change")
    return row


@transaction.atomic
def rule_delete(*, rule: AlertRule, actor: User, at: datetime) -> None:
    """What it fired ends and is told of as over; the history stays.

    :raises PermissionRefused: unless ``actor`` operates the fleet.
    :raises AlertRefused: if the product came with it.
    """
    require_operator(actor)
    if rule.shipped:
        message = f"the product comes with the rule {rule.name}; switch it off instead"
        raise AlertRefused(message, field="name")
    rule_end(rule=rule, at=at)
    _audit(rule, actor=actor, action="alert_rule.delete")
    rule.delete()


def _audit(rule: AlertRule, *, actor: User, action: str) -> None:
    audit(actor=actor, action=action, uid=rule.uid, name=rule.name, document=rule.document)


@transaction.atomic
def silence_begin(
    *, matchers: Sequence[str], ends_at: datetime, reason: str, actor: User, at: datetime
) -> AlertSilence:
    """Nobody is told of what all the matchers fit until then.

    :raises PermissionRefused: unless ``actor`` operates the fleet.
    :raises AlertRefused: if something is wrong with it.
    """
    require_operator(actor)
    if not matchers or len(matchers) > MOST_MATCHERS:
        message = f"give 1 to {MOST_MATCHERS} conditions, such as rule=card-hot"
        raise AlertRefused(message, field="matchers")
    try:
        read = [matcher_read(text) for text in matchers]
    except ValueError as error:
        raise AlertRefused(str(error), field="matchers") from None
    if not at < ends_at <= at + LONGEST_SILENCE:
        message = (
            f"a silence ends within {LONGEST_SILENCE.days} days from now; choose a time until then"
        )
        raise AlertRefused(message, field="ends_at")
    if not reason.strip() or len(reason) > _LONGEST_REASON:
        message = f"say why in 1 to {_LONGEST_REASON} characters, for those who wonder later"
        raise AlertRefused(message, field="reason")
    silence = AlertSilence.objects.create(
        matchers=[str(matcher) for matcher in read],
        reason=reason.strip(),
        began_at=at,
        ends_at=ends_at,
        made_by_name=actor.username,
    )
    audit(
        actor=actor,
        action="alert_silence.begin",
        uid=silence.uid,
        name=str(silence)[:200],
        until=ends_at.isoformat(),
        reason=silence.reason,
    )
    return silence


@transaction.atomic
def silence_end(*, silence: AlertSilence, actor: User, at: datetime) -> None:
    """Before its time; one that is over stays as it is.

    :raises PermissionRefused: unless ``actor`` operates the fleet.
    """
    require_operator(actor)
    ended = AlertSilence.objects.filter(pk=silence.pk, ends_at__gt=at).update(
        ends_at=at, ended_by_name=actor.username
    )
    if ended:
        audit(
            actor=actor,
            action="alert_silence.end",
            uid=silence.uid,
            name=str(silence)[:200],
        )
