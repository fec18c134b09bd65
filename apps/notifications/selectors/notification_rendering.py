"""Events as their reader sees them: title, detail and link."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from apps.notifications.models import Event, Notification
from controlplane.domain.alerts.notifications import (
    NOTIFICATION_TYPES,
    NotificationKind,
    NotificationSeverity,
    NotificationSubject,
)
from controlplane.web.reasons import render_reason


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationKindLabels:
    #: The kind, as listed in preferences.
    label: Promise
    #: What happened to ``%(name)s``.
    title: Promise
    icon: str


NOTIFICATION_LABELS: Mapping[NotificationKind, NotificationKindLabels] = {
    NotificationKind.JOB_SUCCEEDED: NotificationKindLabels(
        label=_("A job has succeeded"), title=_("%(name)s has succeeded"), icon="circle-check"
    ),
    NotificationKind.JOB_FAILED: NotificationKindLabels(
        label=_("A job has failed"), title=_("%(name)s has failed"), icon="circle-x"
    ),
    NotificationKind.JOB_CANCELLED: NotificationKindLabels(
        label=_("A job was cancelled"), title=_("%(name)s was cancelled"), icon="player-stop"
    ),
    NotificationKind.PIPELINE_SUCCEEDED: NotificationKindLabels(
        label=_("A pipeline has succeeded"), title=_("%(name)s has succeeded"), icon="circle-check"
    ),
    NotificationKind.PIPELINE_HELD: NotificationKindLabels(
        label=_("A pipeline is waiting for approval at a gate"),
        title=_("%(name)s is waiting for approval at a gate"),
        icon="hourglass",
    ),
    NotificationKind.PIPELINE_FAILED: NotificationKindLabels(
        label=_("A pipeline has failed"), title=_("%(name)s has failed"), icon="circle-x"
    ),
    NotificationKind.PIPELINE_CANCELLED: NotificationKindLabels(
        label=_("A pipeline was cancelled"), title=_("%(name)s was cancelled"), icon="player-stop"
    ),
    NotificationKind.DEPLOYMENT_READY: NotificationKindLabels(
        label=_("A deployment is ready"), title=_("%(name)s is ready"), icon="rocket"
    ),
    NotificationKind.DEPLOYMENT_DEGRADED: NotificationKindLabels(
        label=_("A deployment is degraded"),
        title=_("%(name)s is degraded"),
        icon="alert-triangle",
    ),
    NotificationKind.DEPLOYMENT_RECOVERED: NotificationKindLabels(
        label=_("A deployment has recovered"), title=_("%(name)s has recovered"), icon="check"
    ),
    NotificationKind.MODEL_IMPORTED: NotificationKindLabels(
        label=_("A model has been imported"),
        title=_("%(name)s has been imported"),
        icon="stack-2",
    ),
    NotificationKind.MODEL_REFUSED: NotificationKindLabels(
        label=_("A model could not be imported"),
        title=_("%(name)s could not be imported"),
        icon="circle-x",
    ),
    NotificationKind.CARD_ISOLATED: NotificationKindLabels(
        label=_("Card or node isolated"),
        title=_("%(name)s was isolated"),
        icon="alert-triangle",
    ),
    NotificationKind.CARD_UNPROVED: NotificationKindLabels(
        label=_("A burn-in has failed"),
        title=_("%(name)s has failed its burn-in"),
        icon="circle-x",
    ),
    NotificationKind.CARD_RETURNED: NotificationKindLabels(
        label=_("A card or node is in use again"),
        title=_("%(name)s was returned to service"),
        icon="check",
    ),
    NotificationKind.HEALTH_HELD_BACK: NotificationKindLabels(
        label=_("Health action requires a decision"),
        title=_("%(name)s: decision required"),
        icon="hourglass",
    ),
    NotificationKind.WEBHOOK_GIVEN_UP: NotificationKindLabels(
        label=_("A delivery to a webhook was given up"),
        title=_("The webhook %(name)s could not be reached; one delivery was given up"),
        icon="webhook",
    ),
    NotificationKind.WEBHOOK_DISABLED: NotificationKindLabels(
        label=_("A webhook was disabled"),
        title=_("The webhook %(name)s was disabled"),
        icon="webhook",
    ),
    NotificationKind.TEST: NotificationKindLabels(
        label=_("Test notification"), title=_("Test notification, sent by %(name)s"), icon="send"
    ),
}

_COLOURS = {
    NotificationSeverity.GOOD: "green",
    NotificationSeverity.INFO: "secondary",
    NotificationSeverity.BAD: "red",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedNotification:
    """A notification as its reader sees it."""

    title: str
    #: Why, where there is a reason.
    detail: str
    #: The page of the subject; empty where it has none.
    href: str
    icon: str
    #: ``green``, ``red`` or ``secondary``.
    colour: str


def render_notification(event: Event) -> RenderedNotification:
    """In the language that is active now."""
    kind = NotificationKind(event.kind)
    labels = NOTIFICATION_LABELS[kind]
    return RenderedNotification(
        title=str(labels.title) % {"name": event.subject_name},
        detail=render_reason(event.reason),
        href=event_subject_url(event),
        icon=labels.icon,
        colour=_COLOURS[NOTIFICATION_TYPES[kind].severity],
    )


_PAGES = {
    NotificationSubject.JOB: "job",
    NotificationSubject.PIPELINE: "pipeline",
    NotificationSubject.DEPLOYMENT: "deployment",
    NotificationSubject.MODEL_VERSION: "model-version",
    NotificationSubject.WEBHOOK: "webhook",
    NotificationSubject.CARD: "card",
}


def event_subject_url(event: Event) -> str:
    """The path of the subject's page."""
    if event.subject_kind == NotificationSubject.CLUSTER:
        return reverse("faults")
    if event.subject_kind == NotificationSubject.NODE:
        evidence = event.payload["evidence"]
        return reverse("node", args=[evidence["cluster_uid"], evidence["node"]])
    page = _PAGES.get(NotificationSubject(event.subject_kind))
    return reverse(page, args=[event.subject_uid]) if page else reverse("notification-settings")


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationListItem:
    """A notification with its rendered texts."""

    notification: Notification
    rendered: RenderedNotification


def render_notification_list(notifications: list[Notification]) -> list[NotificationListItem]:
    """In the same order; each must have its ``event`` at hand."""
    return [
        NotificationListItem(notification=one, rendered=render_notification(one.event))
        for one in notifications
    ]
