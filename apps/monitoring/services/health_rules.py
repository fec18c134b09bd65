"""Changes of health rules and of the health policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError, transaction

from apps.accounts.models import User
from apps.accounts.services import record_audit_entry
from apps.fleet.selectors import require_fleet_operator
from apps.monitoring.models import HealthPolicy, HealthRule
from controlplane.domain.common.reasons import Reason
from controlplane.domain.common.spec_fields import FieldFinding, FieldsRefused
from controlplane.domain.health.rules import (
    DEFAULT_RULES,
    HealthRuleInvalid,
    HealthRuleSpec,
    health_condition_document,
    parse_health_rule,
)
from controlplane.domain.health.snapshots import DecisionPolicy


@transaction.atomic
def default_health_rules_create(*, at: datetime) -> int:
    """Put the rules that an installation begins with where there were none yet; how many that were."""
    policy, _ = HealthPolicy.objects.select_for_update().get_or_create(
        id=1, defaults={"changed_at": at}
    )
    if policy.seeded_at is not None:
        return 0
    known = set(HealthRule.objects.values_list("name", flat=True))
    rows = [
        HealthRule(**_rule_columns(rule), changed_at=at)
        for rule in DEFAULT_RULES
        if rule.name not in known
    ]
    HealthRule.objects.bulk_create(rows)
    HealthPolicy.objects.filter(pk=policy.pk).update(seeded_at=at)
    return len(rows)


@transaction.atomic
def health_rule_create(*, document: Mapping[str, Any], actor: User, at: datetime) -> HealthRule:
    """Create a rule; it is evaluated from the next run on.

    :param document: ``name``, ``level``, ``condition``; optional ``title`` and ``enabled``.
    :raises PermissionRefused: unless ``actor`` operates the fleet.
    :raises HealthRuleInvalid: if the rule is not valid, or its name is in use.
    """
    require_fleet_operator(actor)
    row = HealthRule()
    try:
        with transaction.atomic():
            _save_health_rule(row, document, actor=actor, at=at)
    except IntegrityError:
        message = Reason(
            "health_rule.name.already_exists",
            "a rule named {name} already exists; change that rule instead",
            name=row.name,
        )
        raise HealthRuleInvalid(FieldFinding(field="name", message=message)) from None
    _audit_rule(row, actor=actor, action="health_rule.create")
    return row


@transaction.atomic
def health_rule_change(
    *, rule: HealthRule, document: Mapping[str, Any], actor: User, at: datetime
) -> HealthRule:
    """Change the fields that the document names, except the name; open faults of the rule are evaluated again.

    :raises PermissionRefused: unless ``actor`` operates the fleet.
    :raises HealthRuleInvalid: if the rule is not valid.
    """
    require_fleet_operator(actor)
    row = HealthRule.objects.select_for_update().get(pk=rule.pk)
    before = {field: getattr(row, field) for field in ("title", "level", "condition", "enabled")}
    _save_health_rule(row, {**before, **document, "name": row.name}, actor=actor, at=at)
    _audit_rule(row, actor=actor, action="health_rule.change")
    return row


@transaction.atomic
def health_rule_delete(*, rule: HealthRule, actor: User, at: datetime) -> None:
    """Delete the rule; its faults end with the next run.

    :raises PermissionRefused: unless ``actor`` operates the fleet.
    """
    del at
    require_fleet_operator(actor)
    _audit_rule(rule, actor=actor, action="health_rule.delete")
    rule.delete()


def _save_health_rule(
    row: HealthRule, document: Mapping[str, Any], *, actor: User, at: datetime
) -> None:
    for name, value in _rule_columns(parse_health_rule(document)).items():
        setattr(row, name, value)
    row.enabled = document.get("enabled", True)
    row.changed_by, row.changed_at = actor, at
    row.save()


def _rule_columns(rule: HealthRuleSpec) -> dict[str, Any]:
    condition = health_condition_document(rule.condition)
    return {"name": rule.name, "title": rule.title, "level": rule.level, "condition": condition}


def _audit_rule(row: HealthRule, *, actor: User, action: str) -> None:
    record_audit_entry(
        row,
        actor=actor,
        action=action,
        condition=row.condition,
        level=f"L{row.level}",
        enabled=row.enabled,
    )


_THOUSANDTHS = frozenset({"pool_share", "stall_share"})
#: Beyond this a duration or a count is a slip of the pen.
_MOST = 1_000_000


class HealthPolicyRefused(FieldsRefused):
    """The policy cannot be like this; one finding for each thing wrong."""


@transaction.atomic
def health_policy_change(
    *,
    actor: User,
    at: datetime,
    automatic: bool | None = None,
    settings: Mapping[str, float] | None = None,
) -> HealthPolicy:
    """Change what is named, leave the rest as it is; what holds from now on.

    :param settings: fields of ``DecisionPolicy``; durations in seconds, shares in thousandths.
    :raises PermissionRefused: unless ``actor`` operates the fleet.
    :raises HealthPolicyRefused: for a field that there is not, or a value that it cannot have.
    """
    require_fleet_operator(actor)
    row, _ = HealthPolicy.objects.select_for_update().get_or_create(
        id=1, defaults={"changed_at": at}
    )
    before = row.policy
    row.settings = _with_policy_settings(before, settings or {}).as_settings()
    row.automatic = row.automatic if automatic is None else automatic
    row.changed_by, row.changed_at = actor, at
    row.save()
    record_audit_entry(
        actor=actor,
        action="health_policy.change",
        name="health policy",
        automatic=row.automatic,
        **{
            name: value
            for name, value in row.settings.items()
            if value != before.as_settings()[name]
        },
    )
    return row


def _with_policy_settings(policy: DecisionPolicy, settings: Mapping[str, float]) -> DecisionPolicy:
    known = {field.name: getattr(policy, field.name) for field in fields(policy)}
    findings, changes = [], dict[str, Any]()
    for name, value in settings.items():
        if name not in known:
            message = Reason(
                "health_policy.setting.unknown",
                "unknown setting of the health policy; use one of {settings}",
                settings=", ".join(sorted(known)),
            )
            findings.append(FieldFinding(field=name, message=message))
        elif (wrong := _policy_setting_error(name, value)) is not None:
            findings.append(FieldFinding(field=name, message=wrong))
        else:
            now = known[name]
            changes[name] = (
                timedelta(seconds=value) if isinstance(now, timedelta) else type(now)(value)
            )
    if findings:
        raise HealthPolicyRefused(findings)
    return replace(policy, **changes)


def _policy_setting_error(name: str, value: float) -> str | None:
    most = 1000 if name in _THOUSANDTHS else _MOST
    if not 0 <= value <= most:
        return Reason(
            "health_policy.setting.out_of_range",
            "the setting must be 0 to {limit}, got {value}",
            limit=most,
            value=f"{value:g}",
        )
    return None
