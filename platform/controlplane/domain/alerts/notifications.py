"""Kinds of notifications to users, as data: one row of a table for each kind.

A new kind is a code in :class:`NotificationKind`, a row in :data:`NOTIFICATION_TYPES`, and its labels in
``apps.notifications.selectors.notifications``. No other module lists the kinds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any


class NotificationKind(StrEnum):
    JOB_SUCCEEDED = "job.succeeded"
    JOB_FAILED = "job.failed"
    JOB_CANCELLED = "job.cancelled"
    PIPELINE_SUCCEEDED = "pipeline.succeeded"
    PIPELINE_HELD = "pipeline.held"
    PIPELINE_FAILED = "pipeline.failed"
    PIPELINE_CANCELLED = "pipeline.cancelled"
    DEPLOYMENT_READY = "deployment.ready"
    DEPLOYMENT_DEGRADED = "deployment.degraded"
    DEPLOYMENT_RECOVERED = "deployment.recovered"
    MODEL_IMPORTED = "model.imported"
    MODEL_REFUSED = "model.refused"
    CARD_ISOLATED = "card.isolated"
    CARD_UNPROVED = "card.unproved"
    CARD_RETURNED = "card.returned"
    HEALTH_HELD_BACK = "health.held_back"
    WEBHOOK_GIVEN_UP = "webhook.given_up"
    WEBHOOK_DISABLED = "webhook.disabled"
    TEST = "test"


class NotificationSeverity(StrEnum):
    GOOD = "good"
    INFO = "info"
    #: Action required.
    BAD = "bad"


class NotificationSubject(StrEnum):
    """Kind of object that a notification is about."""

    JOB = "job"
    PIPELINE = "pipeline"
    DEPLOYMENT = "deployment"
    MODEL_VERSION = "model_version"
    CARD = "card"
    NODE = "node"
    CLUSTER = "cluster"
    WEBHOOK = "webhook"
    USER = "person"


class NotificationAudience(StrEnum):
    #: The creator of the subject, and members of its team who chose all events.
    CREATOR = "maker"
    #: Users who may change the team.
    ADMINISTRATORS = "administrators"
    #: Operators of the fleet, in any team.
    OPERATORS = "operators"
    #: The user who requested it.
    ASKER = "asker"


class NotificationChannel(StrEnum):
    PAGE = "page"
    EMAIL = "email"


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationType:
    """One kind of notification."""

    severity: NotificationSeverity
    subject: NotificationSubject
    #: Default channels.
    channels: frozenset[NotificationChannel] = frozenset({NotificationChannel.PAGE})
    #: Default for members of the team who did not create the subject.
    whole_team: bool = False
    audience: NotificationAudience = NotificationAudience.CREATOR
    #: Notifications of one subject and group are merged if they follow closely.
    group: str

    @property
    def optional(self) -> bool:
        """Whether a reader can choose about it."""
        return self.audience is not NotificationAudience.ASKER


_BOTH = frozenset(NotificationChannel)
_GOOD, _INFO, _BAD = NotificationSeverity


def _type(
    severity: NotificationSeverity, subject: NotificationSubject, group: str, **options: Any
) -> NotificationType:
    return NotificationType(severity=severity, subject=subject, group=group, **options)


NOTIFICATION_TYPES: Mapping[NotificationKind, NotificationType] = {
    NotificationKind.JOB_SUCCEEDED: _type(_GOOD, NotificationSubject.JOB, "end"),
    NotificationKind.JOB_FAILED: _type(_BAD, NotificationSubject.JOB, "end", channels=_BOTH),
    NotificationKind.JOB_CANCELLED: _type(_INFO, NotificationSubject.JOB, "end"),
    NotificationKind.PIPELINE_SUCCEEDED: _type(_GOOD, NotificationSubject.PIPELINE, "end"),
    NotificationKind.PIPELINE_HELD: _type(
        _BAD, NotificationSubject.PIPELINE, "end", channels=_BOTH
    ),
    NotificationKind.PIPELINE_FAILED: _type(
        _BAD, NotificationSubject.PIPELINE, "end", channels=_BOTH
    ),
    NotificationKind.PIPELINE_CANCELLED: _type(_INFO, NotificationSubject.PIPELINE, "end"),
    NotificationKind.DEPLOYMENT_READY: _type(_GOOD, NotificationSubject.DEPLOYMENT, "health"),
    NotificationKind.DEPLOYMENT_DEGRADED: _type(
        _BAD, NotificationSubject.DEPLOYMENT, "health", channels=_BOTH, whole_team=True
    ),
    NotificationKind.DEPLOYMENT_RECOVERED: _type(
        _GOOD, NotificationSubject.DEPLOYMENT, "health", whole_team=True
    ),
    NotificationKind.MODEL_IMPORTED: _type(_GOOD, NotificationSubject.MODEL_VERSION, "import"),
    NotificationKind.MODEL_REFUSED: _type(
        _BAD, NotificationSubject.MODEL_VERSION, "import", channels=_BOTH
    ),
    NotificationKind.CARD_ISOLATED: _type(
        _BAD, NotificationSubject.CARD, "health", audience=NotificationAudience.OPERATORS
    ),
    NotificationKind.CARD_UNPROVED: _type(
        _BAD,
        NotificationSubject.CARD,
        "health",
        channels=_BOTH,
        audience=NotificationAudience.OPERATORS,
    ),
    NotificationKind.CARD_RETURNED: _type(
        _GOOD, NotificationSubject.CARD, "health", audience=NotificationAudience.OPERATORS
    ),
    NotificationKind.HEALTH_HELD_BACK: _type(
        _BAD,
        NotificationSubject.CLUSTER,
        "held_back",
        channels=_BOTH,
        audience=NotificationAudience.OPERATORS,
    ),
    NotificationKind.WEBHOOK_GIVEN_UP: _type(
        _BAD,
        NotificationSubject.WEBHOOK,
        "deliveries",
        audience=NotificationAudience.ADMINISTRATORS,
    ),
    NotificationKind.WEBHOOK_DISABLED: _type(
        _BAD,
        NotificationSubject.WEBHOOK,
        "disabled",
        channels=_BOTH,
        audience=NotificationAudience.ADMINISTRATORS,
    ),
    NotificationKind.TEST: _type(
        _INFO, NotificationSubject.USER, "test", channels=_BOTH, audience=NotificationAudience.ASKER
    ),
}

#: Notifications of one subject and group within this time of the first are merged into one with a count.
COLLAPSED_WITHIN = timedelta(minutes=15)
#: More messages than this to one user within the window are sent as one.
MAILS_IN_A_BURST = 5
BURST = timedelta(minutes=10)


def collapse_key(kind: NotificationKind, *, subject_uid: str) -> str:
    """Notifications with equal keys are merged."""
    return f"{subject_uid}:{NOTIFICATION_TYPES[kind].group}"
