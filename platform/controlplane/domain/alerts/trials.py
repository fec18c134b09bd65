"""What a rule would have done: its steps over values that were kept."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from controlplane.domain.alerts.rules import Rule
from controlplane.domain.alerts.states import AlertState, Standing, step


@dataclass(frozen=True, slots=True, kw_only=True)
class Firing:
    began_at: datetime
    #: None while it goes on.
    ended_at: datetime | None


def firings(rule: Rule, values: Iterable[tuple[datetime, float | None]]) -> tuple[Firing, ...]:
    """Each time that the rule would have fired on one thing, given its values in the order of time."""
    found: list[Firing] = []
    standing: Standing | None = None
    for at, value in values:
        holds = None if value is None else rule.op.holds(value, rule.threshold)
        standing = step(standing, holds=holds, at=at, lasts=rule.lasts, keeps=rule.keeps)
        if standing is not None and standing.state is AlertState.RESOLVED:
            found.append(Firing(began_at=standing.fired_at or at, ended_at=standing.resolved_at))
            standing = None
    if standing is not None and standing.fired_at is not None:
        found.append(Firing(began_at=standing.fired_at, ended_at=None))
    return tuple(found)
