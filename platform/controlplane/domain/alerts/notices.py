"""The notifications of a group of alerts: the alerts of one rule with equal grouping labels.

An *episode* of a group begins with its first firing alert and ends when none fires. In an episode one notice
says that it fires; alerts that join later are notified at most every :data:`UPDATE_AFTER`; the notice is
repeated after the rule's ``repeat``, if set; and one says that it is resolved. A "resolved" notice is sent if
and only if a "firing" one was. Silenced alerts are notified when the silence ends, if they still fire then.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from controlplane.domain.alerts.rules import (
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
class FiringMember:
    """An alert of the group that fires now."""

    silenced: bool
    #: A notice about it was created.
    notified: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationEpisode:
    """Notices so far; ``notified_at`` is None before the first."""

    notified_at: datetime | None = None
    repeat: timedelta | None = None


def notice_due(
    episode: NotificationEpisode, members: Collection[FiringMember], *, at: datetime
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


def receivers_of(
    routes: Iterable[NotificationRoute], labels: Labels, *, severity: AlertSeverity
) -> frozenset[int]:
    """Everybody whom one of the routes names, each once."""
    taken = (route.receivers for route in routes if route.matches(labels, severity=severity))
    return frozenset().union(*taken)
