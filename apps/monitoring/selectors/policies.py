"""What automatic decisions may do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any

from apps.monitoring.models import HealthPolicy
from controlplane.domain.health.decisions import Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthStance:
    """The policy, and whether rules act by themselves at all."""

    automatic: bool
    policy: Policy
    #: Who changed it last, and when; empty and None where nobody did.
    changed_by_name: str = ""
    changed_at: datetime | None = None


def health_stance() -> HealthStance:
    """As it holds now; the defaults where nobody has changed anything."""
    row = HealthPolicy.objects.select_related("changed_by").first()
    return stance_of(row) if row else HealthStance(automatic=True, policy=Policy())


def stance_of(row: HealthPolicy) -> HealthStance:
    return HealthStance(
        automatic=row.automatic,
        policy=policy_from(row.settings),
        changed_by_name=row.changed_by.username if row.changed_by else "",
        changed_at=row.changed_at,
    )


def policy_json(policy: Policy) -> dict[str, float]:
    """Each setting as a number: durations in seconds."""
    values = {field.name: getattr(policy, field.name) for field in fields(policy)}
    return {
        name: value.total_seconds() if isinstance(value, timedelta) else value
        for name, value in values.items()
    }


def policy_from(settings: Mapping[str, float]) -> Policy:
    """``policy_json`` the other way; what is not named has its default, what is not known is left aside."""
    default = Policy()
    changes: dict[str, Any] = {
        field.name: timedelta(seconds=settings[field.name])
        if isinstance(getattr(default, field.name), timedelta)
        else settings[field.name]
        for field in fields(default)
        if field.name in settings
    }
    return Policy(**changes)
