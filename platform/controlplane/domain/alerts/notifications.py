"""Kinds of notifications to users, as data: one row of a table for each kind.

A new kind is a code in :class:`NotificationKind`, a row in :data:`NOTIFICATION_TYPES`, and its labels in
``apps.notifications.selectors.notifications``. No other module lists the kinds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum


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

NOTIFICATION_TYPES: Mapping[NotificationKind, NotificationType] = {
    NotificationKind.JOB_SUCCEEDED: NotificationType(
        severity=NotificationSeverity.GOOD, subject=NotificationSubject.JOB, group="end"
    ),
    NotificationKind.JOB_FAILED: NotificationType(
        severity=NotificationSeverity.BAD,
        subject=NotificationSubject.JOB,
        group="end",
        channels=_BOTH,
    ),
    NotificationKind.JOB_CANCELLED: NotificationType(
        severity=NotificationSeverity.INFO, subject=NotificationSubject.JOB, group="end"
    ),
    NotificationKind.PIPELINE_SUCCEEDED: NotificationType(
        severity=NotificationSeverity.GOOD, subject=NotificationSubject.PIPELINE, group="end"
    ),
    NotificationKind.PIPELINE_HELD: NotificationType(
        severity=NotificationSeverity.BAD,
        subject=NotificationSubject.PIPELINE,
        group="end",
        channels=_BOTH,
    ),
    NotificationKind.PIPELINE_FAILED: NotificationType(
        severity=NotificationSeverity.BAD,
        subject=NotificationSubject.PIPELINE,
        group="end",
        channels=_BOTH,
    ),
    NotificationKind.PIPELINE_CANCELLED: NotificationType(
        severity=NotificationSeverity.INFO, subject=NotificationSubject.PIPELINE, group="end"
    ),
    NotificationKind.DEPLOYMENT_READY: NotificationType(
        severity=NotificationSeverity.GOOD, subject=NotificationSubject.DEPLOYMENT, group="health"
    ),
    NotificationKind.DEPLOYMENT_DEGRADED: NotificationType(
        severity=NotificationSeverity.BAD,
        subject=NotificationSubject.DEPLOYMENT,
        group="health",
        channels=_BOTH,
        whole_team=True,
    ),
    NotificationKind.DEPLOYMENT_RECOVERED: NotificationType(
        severity=NotificationSeverity.GOOD,
        subject=NotificationSubject.DEPLOYMENT,
        group="health",
        whole_team=True,
    ),
    NotificationKind.MODEL_IMPORTED: NotificationType(
        severity=NotificationSeverity.GOOD,
        subject=NotificationSubject.MODEL_VERSION,
        group="import",
    ),
    NotificationKind.MODEL_REFUSED: NotificationType(
        severity=NotificationSeverity.BAD,
        subject=NotificationSubject.MODEL_VERSION,
        group="import",
        channels=_BOTH,
    ),
    NotificationKind.CARD_ISOLATED: NotificationType(
        severity=NotificationSeverity.BAD,
        subject=NotificationSubject.CARD,
        group="health",
        audience=NotificationAudience.OPERATORS,
    ),
    NotificationKind.CARD_UNPROVED: NotificationType(
        severity=NotificationSeverity.BAD,
        subject=NotificationSubject.CARD,
        group="health",
        channels=_BOTH,
        audience=NotificationAudience.OPERATORS,
    ),
    NotificationKind.CARD_RETURNED: NotificationType(
        severity=NotificationSeverity.GOOD,
        subject=NotificationSubject.CARD,
        group="health",
        audience=NotificationAudience.OPERATORS,
    ),
    NotificationKind.HEALTH_HELD_BACK: NotificationType(
        severity=NotificationSeverity.BAD,
        subject=NotificationSubject.CLUSTER,
        group="held_back",
        channels=_BOTH,
        audience=NotificationAudience.OPERATORS,
    ),
    NotificationKind.WEBHOOK_GIVEN_UP: NotificationType(
        severity=NotificationSeverity.BAD,
        subject=NotificationSubject.WEBHOOK,
        group="deliveries",
        audience=NotificationAudience.ADMINISTRATORS,
    ),
    NotificationKind.WEBHOOK_DISABLED: NotificationType(
        severity=NotificationSeverity.BAD,
        subject=NotificationSubject.WEBHOOK,
        group="disabled",
        channels=_BOTH,
        audience=NotificationAudience.ADMINISTRATORS,
    ),
    NotificationKind.TEST: NotificationType(
        severity=NotificationSeverity.INFO,
        subject=NotificationSubject.USER,
        group="test",
        channels=_BOTH,
        audience=NotificationAudience.ASKER,
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
