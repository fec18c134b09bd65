"""How one alert stands: a pure step from what was known to what is seen now.

::

                     holds                holds for `lasts`
       (no alert) ─────────▶ PENDING ──────────────────────▶ FIRING ◀─┐
           ▲                    │                               │     │ holds again
           └── does not hold ───┘                               ▼     │
                                                  does not hold: quiet┘
                                                                │ for `keeps`
                                                                ▼
                                                            RESOLVED

A turn that is lost, comes twice or comes late changes nothing but the time at which the step is made: each
step depends on what is kept and on the clock alone. What nobody can measure now stays as it was.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum


class AlertState(StrEnum):
    PENDING = "pending"
    FIRING = "firing"
    RESOLVED = "resolved"


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """One alert from the first time that its condition held."""

    state: AlertState
    #: Since when it has held without a break.
    began_at: datetime
    #: When it was last seen to hold.
    held_at: datetime
    fired_at: datetime | None = None
    #: Since when it has no longer held, while it still fires.
    quiet_since: datetime | None = None
    resolved_at: datetime | None = None


def step(
    standing: Standing | None,
    *,
    holds: bool | None,
    at: datetime,
    lasts: timedelta,
    keeps: timedelta,
) -> Standing | None:
    """What becomes of an alert; None where there is none any more, or never was.

    ``holds`` is None where nobody can say. ``standing`` is that of an alert that is not resolved.
    """
    if standing is None:
        begun = Standing(state=AlertState.PENDING, began_at=at, held_at=at)
        return _ripen(begun, at=at, lasts=lasts) if holds else None
    # An answer from before what is known already comes too late to say anything.
    if holds is None or at < max(standing.held_at, standing.quiet_since or standing.held_at):
        return standing
    if holds:
        return _ripen(replace(standing, held_at=at, quiet_since=None), at=at, lasts=lasts)
    return _calm(standing, at=at, keeps=keeps)


def _ripen(standing: Standing, *, at: datetime, lasts: timedelta) -> Standing:
    if standing.state is AlertState.PENDING and at - standing.began_at >= lasts:
        return replace(standing, state=AlertState.FIRING, fired_at=at)
    return standing


def _calm(standing: Standing, *, at: datetime, keeps: timedelta) -> Standing | None:
    if standing.state is AlertState.PENDING:
        return None
    quiet = replace(standing, quiet_since=standing.quiet_since or at)
    if quiet.quiet_since is not None and at - quiet.quiet_since < keeps:
        return quiet
    return replace(quiet, state=AlertState.RESOLVED, resolved_at=at)
