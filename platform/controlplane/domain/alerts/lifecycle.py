"""The lifecycle of an alert, and the notifications of a group of alerts.

::

                  condition met        condition met for `lasts`
       (no alert) ─────────▶ PENDING ──────────────────────▶ FIRING ◀──┐
           ▲                    │                               │      │ met again
           └────── not met ─────┘                               ▼      │
                                                           not met: quiet
                                                                │ for `keeps`
                                                                ▼
                                                            RESOLVED

An evaluation that is lost, repeated or late only delays a transition: each one depends on the stored state and
on the clock alone. An alert without a sample keeps its state.

Alerts of one rule with equal grouping labels are notified together.

An *episode* of a group begins with its first firing alert and ends when none fires. In an episode one notice
says that it fires; alerts that join later are notified at most every :data:`UPDATE_AFTER`; the notice is
repeated after the rule's ``repeat``, if set; and one says that it is resolved. A "resolved" notice is sent if
and only if a "firing" one was. Silenced alerts are notified when the silence ends, if they still fire then.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from controlplane.domain.alerts.rules import (
    AlertRuleSpec,
    AlertSeverity,
    LabelMatcher,
    Labels,
    all_matchers_match,
)

#: Minimum interval between notices about further alerts of a group.
UPDATE_AFTER = timedelta(minutes=5)
LONGEST_SILENCE = timedelta(days=30)


class NoticeKind(StrEnum):
    FIRING = "firing"
    #: Others have joined.
    MORE = "more"
    #: A repetition: it still fires.
    REPEAT = "repeat"
    RESOLVED = "resolved"
    #: A test of the receiver.
    TEST = "test"


@dataclass(frozen=True, slots=True, kw_only=True)
class FiringGroupMember:
    """An alert of the group that fires now."""

    silenced: bool
    #: A notice about it was created.
    notified: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertGroupNotificationState:
    """Notices so far; ``notified_at`` is None before the first."""

    notified_at: datetime | None = None
    repeat: timedelta | None = None


def due_notice_kind(
    episode: AlertGroupNotificationState, members: Collection[FiringGroupMember], *, at: datetime
) -> NoticeKind | None:
    """The kind of the due notice; None if none is due."""
    if not members:
        return None if episode.notified_at is None else NoticeKind.RESOLVED
    unsilenced = [member for member in members if not member.silenced]
    unnotified = any(not member.notified for member in unsilenced)
    if episode.notified_at is None:
        return NoticeKind.FIRING if unnotified else None
    since = at - episode.notified_at
    if unnotified and since >= UPDATE_AFTER:
        return NoticeKind.MORE
    if unsilenced and episode.repeat is not None and since >= episode.repeat:
        return NoticeKind.REPEAT
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """Suppresses notifications of alerts that match its matchers, until its end."""

    matchers: tuple[LabelMatcher, ...]
    began_at: datetime
    ends_at: datetime

    def covers(self, labels: Labels, *, at: datetime) -> bool:
        return self.began_at <= at < self.ends_at and all_matchers_match(self.matchers, labels)


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationRoute:
    """Which alerts go to which receivers."""

    severity: AlertSeverity
    matchers: tuple[LabelMatcher, ...]
    #: Keys of the receivers.
    receivers: frozenset[int]

    def matches(self, labels: Labels, *, severity: AlertSeverity) -> bool:
        """Whether the severity is high enough and every matcher matches."""
        return severity.rank >= self.severity.rank and all_matchers_match(self.matchers, labels)


def matching_receivers(
    routes: Iterable[NotificationRoute], labels: Labels, *, severity: AlertSeverity
) -> frozenset[int]:
    """Everybody whom one of the routes names, each once."""
    taken = (route.receivers for route in routes if route.matches(labels, severity=severity))
    return frozenset().union(*taken)


class AlertState(StrEnum):
    PENDING = "pending"
    FIRING = "firing"
    RESOLVED = "resolved"


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertProgress:
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


def next_alert_progress(
    standing: AlertProgress | None,
    *,
    holds: bool | None,
    at: datetime,
    lasts: timedelta,
    keeps: timedelta,
) -> AlertProgress | None:
    """The next state of an alert; None if there is none.

    ``holds`` is None if the value is unknown. ``standing`` is that of an alert that is not resolved.
    """
    if standing is None:
        begun = AlertProgress(state=AlertState.PENDING, began_at=at, held_at=at)
        return _pending_to_firing(begun, at=at, lasts=lasts) if holds else None
    # A sample older than the stored state is ignored.
    if holds is None or at < max(standing.held_at, standing.quiet_since or standing.held_at):
        return standing
    if holds:
        return _pending_to_firing(
            replace(standing, held_at=at, quiet_since=None), at=at, lasts=lasts
        )
    return _firing_to_resolved(standing, at=at, keeps=keeps)


def _pending_to_firing(standing: AlertProgress, *, at: datetime, lasts: timedelta) -> AlertProgress:
    if standing.state is AlertState.PENDING and at - standing.began_at >= lasts:
        return replace(standing, state=AlertState.FIRING, fired_at=at)
    return standing


def _firing_to_resolved(
    standing: AlertProgress, *, at: datetime, keeps: timedelta
) -> AlertProgress | None:
    if standing.state is AlertState.PENDING:
        return None
    quiet = replace(standing, quiet_since=standing.quiet_since or at)
    if quiet.quiet_since is not None and at - quiet.quiet_since < keeps:
        return quiet
    return replace(quiet, state=AlertState.RESOLVED, resolved_at=at)


@dataclass(frozen=True, slots=True, kw_only=True)
class FiringAlert:
    began_at: datetime
    #: None while it fires.
    ended_at: datetime | None


def simulate_firings(
    rule: AlertRuleSpec, values: Iterable[tuple[datetime, float | None]]
) -> tuple[FiringAlert, ...]:
    """Each time that the rule would have fired on one thing, given its values in the order of time."""
    found: list[FiringAlert] = []
    standing: AlertProgress | None = None
    for at, value in values:
        holds = None if value is None else rule.op.holds(value, rule.threshold)
        standing = next_alert_progress(
            standing, holds=holds, at=at, lasts=rule.lasts, keeps=rule.keeps
        )
        if standing is not None and standing.state is AlertState.RESOLVED:
            found.append(
                FiringAlert(began_at=standing.fired_at or at, ended_at=standing.resolved_at)
            )
            standing = None
    if standing is not None and standing.fired_at is not None:
        found.append(FiringAlert(began_at=standing.fired_at, ended_at=None))
    return tuple(found)
