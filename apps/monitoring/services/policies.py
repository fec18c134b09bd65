"""The guards and pauses of automatic decisions, as an operator sets them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from apps.accounts.models import User
from apps.accounts.services import audit
from apps.fleet.selectors import require_operator
from apps.monitoring.models import HealthPolicy
from apps.monitoring.selectors.policies import HealthStance, policy_json, stance_of
from controlplane.domain.common.spec_fields import FieldFinding
from controlplane.domain.health.decisions import Policy

_THOUSANDTHS = frozenset({"pool_share", "stall_share"})
#: Beyond this a duration or a count is a slip of the pen.
_MOST = 1_000_000


class PolicyRefused(Exception):
    """The policy cannot be like this; one finding for each thing wrong."""

    def __init__(self, findings: list[FieldFinding]) -> None:
        super().__init__("; ".join(f"{each.field}: {each.message}" for each in findings))
        self.findings = tuple(findings)


@transaction.atomic
def policy_change(
    *,
    actor: User,
    at: datetime,
    automatic: bool | None = None,
    settings: Mapping[str, float] | None = None,
) -> HealthStance:
    """Change what is named, leave the rest as it is; what holds from now on.

    :param settings: fields of ``Policy``; durations in seconds, shares in thousandths.
    :raises PermissionRefused: unless ``actor`` operates the fleet.
    :raises PolicyRefused: for a field that there is not, or a value that it cannot have.
    """
    require_operator(actor)
    row, _ = HealthPolicy.objects.select_for_update().get_or_create(
        id=1, defaults={"changed_at": at}
    )
    before = stance_of(row)
    policy = _changed(before.policy, settings or {})
    row.settings = policy_json(policy)
    row.automatic = before.automatic if automatic is None else automatic
    row.changed_by, row.changed_at = actor, at
    row.save()
    after = stance_of(row)
    audit(
        actor=actor,
        action="health_policy.change",
        name="health policy",
        automatic=after.automatic,
        **{
            name: value
            for name, value in row.settings.items()
            if value != policy_json(before.policy)[name]
        },
    )
    return after


def _changed(policy: Policy, settings: Mapping[str, float]) -> Policy:
    known = {field.name: getattr(policy, field.name) for field in fields(policy)}
    findings, changes = [], dict[str, Any]()
    for name, value in settings.items():
        if name not in known:
            message = f"there is no such setting; use one of {', '.join(sorted(known))}"
            findings.append(FieldFinding(field=name, message=message))
        elif (wrong := _wrong(name, value)) is not None:
            findings.append(FieldFinding(field=name, message=wrong))
        else:
            now = known[name]
            changes[name] = (
                timedelta(seconds=value) if isinstance(now, timedelta) else type(now)(value)
            )
    if findings:
        raise PolicyRefused(findings)
    return replace(policy, **changes)


def _wrong(name: str, value: float) -> str | None:
    most = 1000 if name in _THOUSANDTHS else _MOST
    if not 0 <= value <= most:
        return f"must be from 0 to {most}, got {value:g}"
    return None
