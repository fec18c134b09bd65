"""Who is told what: alerts of one rule that belong together are one message.

An *episode* of a group begins with the first alert of it that fires and ends when none does. In an episode people
are told once that it fires; of alerts that join later at most every :data:`UPDATE_AFTER`; again after the rule's
``repeat`` if it has one; and once that it is over. They hear that it is over if and only if they heard that it
began. Alerts that a silence covers are told of when the silence ends, if they still fire then.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from controlplane.domain.alerts.rules import Labels, Matcher, Severity, all_fit

#: So long people are left alone with further alerts of a group that they know of.
UPDATE_AFTER = timedelta(minutes=5)
LONGEST_SILENCE = timedelta(days=30)


class NoticeKind(StrEnum):
    FIRING = "firing"
    #: Others have joined.
    MORE = "more"
    #: It still goes on.
    REPEAT = "repeat"
    RESOLVED = "resolved"
    #: Somebody wants to see whether it arrives.
    TEST = "test"


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """An alert of the group that fires now."""

    silenced: bool
    #: A notice told of it.
    told: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """What was told so far; ``told_at`` is None while nothing was."""

    told_at: datetime | None = None
    repeat: timedelta | None = None


def notice_due(episode: Episode, members: Collection[Member], *, at: datetime) -> NoticeKind | None:
    """What to tell now; None: nothing."""
    if not members:
        return None if episode.told_at is None else NoticeKind.RESOLVED
    heard = [member for member in members if not member.silenced]
    news = any(not member.told for member in heard)
    if episode.told_at is None:
        return NoticeKind.FIRING if news else None
    since = at - episode.told_at
    if news and since >= UPDATE_AFTER:
        return NoticeKind.MORE
    if heard and episode.repeat is not None and since >= episode.repeat:
        return NoticeKind.REPEAT
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """Nobody is told of what its matchers fit; it ends by itself."""

    matchers: tuple[Matcher, ...]
    began_at: datetime
    ends_at: datetime

    def covers(self, labels: Labels, *, at: datetime) -> bool:
        return self.began_at <= at < self.ends_at and all_fit(self.matchers, labels)


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """Whom to tell of what."""

    severity: Severity
    matchers: tuple[Matcher, ...]
    #: Keys of the receivers.
    receivers: frozenset[int]

    def takes(self, labels: Labels, *, severity: Severity) -> bool:
        """Whether it is at least that bad and every matcher fits."""
        return severity.rank >= self.severity.rank and all_fit(self.matchers, labels)


def receivers_of(routes: Iterable[Route], labels: Labels, *, severity: Severity) -> frozenset[int]:
    """Everybody whom one of the routes names, each once."""
    taken = (route.receivers for route in routes if route.takes(labels, severity=severity))
    return frozenset().union(*taken)
