"""Kinds of notifications to users, as data: one row of a table for each kind.

A new kind is a code in :class:`NotificationKind`, a row in :data:`NOTIFICATION_TYPES`, and its labels in
``apps.notifications.selectors.messages``. Nothing else knows kinds one by one.
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
    #: Somebody should act.
    BAD = "bad"


class NotificationSubject(StrEnum):
    """What the news is about."""

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
    #: Whoever made the subject, and those of its team who want to hear of everything.
    CREATOR = "maker"
    #: Whoever may change the team.
    ADMINISTRATORS = "administrators"
    #: Whoever operates the fleet, in whatever team.
    OPERATORS = "operators"
    #: One person, who asked for it.
    ASKER = "asker"


class NotificationChannel(StrEnum):
    PAGE = "page"
    EMAIL = "email"


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationType:
    """One kind of news."""

    severity: NotificationSeverity
    subject: NotificationSubject
    #: Where it goes unless its reader says otherwise.
    channels: frozenset[NotificationChannel] = frozenset({NotificationChannel.PAGE})
    #: Whether it goes to those of the team who did not make the subject, unless they say otherwise.
    whole_team: bool = False
    audience: NotificationAudience = NotificationAudience.CREATOR
    #: News of one subject with the same group becomes one line while it follows closely.
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

#: News of one subject and group within this long of the first is one line with a count.
COLLAPSED_WITHIN = timedelta(minutes=15)
#: More messages than this to one person within the window become one.
MAILS_IN_A_BURST = 5
BURST = timedelta(minutes=10)


def collapse_key(kind: NotificationKind, *, subject_uid: str) -> str:
    """News with the same key is about the same thing."""
    return f"{subject_uid}:{NOTIFICATION_TYPES[kind].group}"
