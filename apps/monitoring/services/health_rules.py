"""Rules over figures, as operators write them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction

from apps.accounts.models import User
from apps.accounts.services import audit
from apps.fleet.selectors import require_operator
from apps.monitoring.models import HealthPolicy, HealthRule
from controlplane.domain.health.default_rules import DEFAULT_RULES
from controlplane.domain.health.rule_documents import RuleRefused, document_of, rule_of


@transaction.atomic
def rules_seed(*, at: datetime) -> int:
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
            condition=document_of(rule.condition),
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
def rule_create(
    *,
    actor: User,
    at: datetime,
    name: str,
    condition: Mapping[str, Any],
    level: int,
    title: str = "",
    enabled: bool = True,
) -> HealthRule:
    """A new rule; it is judged by from the next turn on.

    :raises PermissionRefused: unless ``actor`` operates the fleet.
    :raises RuleRefused: for the first thing in it that is wrong, or a name that is taken.
    """
    require_operator(actor)
    row = HealthRule(name=name, title=title, condition=condition, level=level, enabled=enabled)
    _settle(row, actor=actor, at=at)
    try:
        with transaction.atomic():
            row.save()
    except IntegrityError:
        raise RuleRefused("name", f"there is a rule called {name} already; change that") from None
    audit(actor=actor, action="health_rule.create", uid=row.uid, name=name, **_told(row))
    return row


@transaction.atomic
def rule_change(*, rule: HealthRule, actor: User, at: datetime, **changes: Any) -> HealthRule:
    """Change ``title``, ``condition``, ``level`` or ``enabled``; what stood by the old condition is judged anew.

    :raises PermissionRefused: unless ``actor`` operates the fleet.
    :raises RuleRefused: for the first thing in it that is wrong.
    """
    require_operator(actor)
    row = HealthRule.objects.select_for_update().get(pk=rule.pk)
    for name, value in changes.items():
        setattr(row, name, value)
    _settle(row, actor=actor, at=at)
    row.save()
    audit(actor=actor, action="health_rule.change", uid=row.uid, name=row.name, **_told(row))
    return row


@transaction.atomic
def rule_delete(*, rule: HealthRule, actor: User) -> None:
    """What it said to be wrong is over with the next turn.

    :raises PermissionRefused: unless ``actor`` operates the fleet.
    """
    require_operator(actor)
    audit(actor=actor, action="health_rule.delete", uid=rule.uid, name=rule.name)
    HealthRule.objects.filter(pk=rule.pk).delete()


def _settle(row: HealthRule, *, actor: User, at: datetime) -> None:
    """As it is kept: what is left out is written out.

    :raises RuleRefused: if it is no rule.
    """
    given = {"name": row.name, "title": row.title, "level": row.level, "condition": row.condition}
    rule = rule_of(given)
    row.title, row.level = rule.title, rule.level
    row.condition = document_of(rule.condition)
    row.changed_by, row.changed_at = actor, at


def _told(row: HealthRule) -> dict[str, Any]:
    return {"condition": row.condition, "level": f"L{row.level}", "enabled": row.enabled}
