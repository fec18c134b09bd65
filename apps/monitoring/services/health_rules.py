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
from apps.monitoring.selectors.health_snapshots import (
    HealthPolicyState,
    decision_policy_json,
    policy_state_of,
)
from controlplane.domain.common.reasons import Reason
from controlplane.domain.common.spec_fields import FieldFinding, describe_findings
from controlplane.domain.health.decisions import DecisionPolicy
from controlplane.domain.health.default_rules import DEFAULT_RULES
from controlplane.domain.health.rules import (
    HealthRuleRefused,
    health_condition_document,
    parse_health_rule,
)


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
        HealthRule(
            name=rule.name,
            title=rule.title,
            condition=health_condition_document(rule.condition),
            level=rule.level,
            changed_at=at,
        )
        for rule in DEFAULT_RULES
        if rule.name not in known
    ]
    HealthRule.objects.bulk_create(rows)
    HealthPolicy.objects.filter(pk=policy.pk).update(seeded_at=at)
    return len(rows)


@transaction.atomic
def health_rule_create(
    *,
    actor: User,
    at: datetime,
    name: str,
    condition: Mapping[str, Any],
    level: int,
    title: str = "",
    enabled: bool = True,
) -> HealthRule:
    """Create a rule; it is evaluated from the next run on.

    :raises PermissionRefused: unless ``actor`` operates the fleet.
    :raises HealthRuleRefused: for the first invalid field, or a name that is in use.
    """
    require_fleet_operator(actor)
    row = HealthRule(name=name, title=title, condition=condition, level=level, enabled=enabled)
    _save_health_rule(row, actor=actor, at=at)
    try:
        with transaction.atomic():
            row.save()
    except IntegrityError:
        raise HealthRuleRefused(
            "name",
            Reason(
                "health_rule.name.already_exists",
                "a rule named {name} already exists; change that rule instead",
                name=name,
            ),
        ) from None
    record_audit_entry(
        actor=actor,
        action="health_rule.create",
        uid=row.uid,
        name=name,
        **_health_rule_audit_detail(row),
    )
    return row


@transaction.atomic
def health_rule_change(
    *, rule: HealthRule, actor: User, at: datetime, **changes: Any
) -> HealthRule:
    """Change ``title``, ``condition``, ``level`` or ``enabled``; open faults of the rule are evaluated again.

    :raises PermissionRefused: unless ``actor`` operates the fleet.
    :raises HealthRuleRefused: for the first invalid field.
    """
    require_fleet_operator(actor)
    row = HealthRule.objects.select_for_update().get(pk=rule.pk)
    for name, value in changes.items():
        setattr(row, name, value)
    _save_health_rule(row, actor=actor, at=at)
    row.save()
    record_audit_entry(
        actor=actor,
        action="health_rule.change",
        uid=row.uid,
        name=row.name,
        **_health_rule_audit_detail(row),
    )
    return row


@transaction.atomic
def health_rule_delete(*, rule: HealthRule, actor: User) -> None:
    """Delete the rule; its faults end with the next run.

    :raises PermissionRefused: unless ``actor`` operates the fleet.
    """
    require_fleet_operator(actor)
    record_audit_entry(actor=actor, action="health_rule.delete", uid=rule.uid, name=rule.name)
    HealthRule.objects.filter(pk=rule.pk).delete()


def _save_health_rule(row: HealthRule, *, actor: User, at: datetime) -> None:
    """As it is kept: what is left out is written out.

    :raises HealthRuleRefused: if it is no rule.
    """
    given = {"name": row.name, "title": row.title, "level": row.level, "condition": row.condition}
    rule = parse_health_rule(given)
    row.title, row.level = rule.title, rule.level
    row.condition = health_condition_document(rule.condition)
    row.changed_by, row.changed_at = actor, at


def _health_rule_audit_detail(row: HealthRule) -> dict[str, Any]:
    return {"condition": row.condition, "level": f"L{row.level}", "enabled": row.enabled}


_THOUSANDTHS = frozenset({"pool_share", "stall_share"})
#: Beyond this a duration or a count is a slip of the pen.
_MOST = 1_000_000


class HealthPolicyRefused(Exception):
    """The policy cannot be like this; one finding for each thing wrong."""

    def __init__(self, findings: list[FieldFinding]) -> None:
        super().__init__(describe_findings(findings))
        self.findings = tuple(findings)


@transaction.atomic
def health_policy_change(
    *,
    actor: User,
    at: datetime,
    automatic: bool | None = None,
    settings: Mapping[str, float] | None = None,
) -> HealthPolicyState:
    """Change what is named, leave the rest as it is; what holds from now on.

    :param settings: fields of ``DecisionPolicy``; durations in seconds, shares in thousandths.
    :raises PermissionRefused: unless ``actor`` operates the fleet.
    :raises HealthPolicyRefused: for a field that there is not, or a value that it cannot have.
    """
    require_fleet_operator(actor)
    row, _ = HealthPolicy.objects.select_for_update().get_or_create(
        id=1, defaults={"changed_at": at}
    )
    before = policy_state_of(row)
    policy = _with_policy_settings(before.policy, settings or {})
    row.settings = decision_policy_json(policy)
    row.automatic = before.automatic if automatic is None else automatic
    row.changed_by, row.changed_at = actor, at
    row.save()
    after = policy_state_of(row)
    record_audit_entry(
        actor=actor,
        action="health_policy.change",
        name="health policy",
        automatic=after.automatic,
        **{
            name: value
            for name, value in row.settings.items()
            if value != decision_policy_json(before.policy)[name]
        },
    )
    return after


def _with_policy_settings(policy: DecisionPolicy, settings: Mapping[str, float]) -> DecisionPolicy:
    known = {field.name: getattr(policy, field.name) for field in fields(policy)}
    findings, changes = [], dict[str, Any]()
    for name, value in settings.items():
        if name not in known:
            message = Reason(
                "health_policy.setting.unknown",
                "unknown setting; use one of {settings}",
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
            "must be 0 to {limit}, got {value}",
            limit=most,
            value=f"{value:g}",
        )
    return None
