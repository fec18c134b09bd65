"""News in its reader's words: what happened, why, and where to look."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from apps.monitoring.models import Event, Notification
from controlplane.domain.news import NEWS, NewsKind, Severity, Subject
from controlplane.web.message_translation import translate_message


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    #: The kind, where people choose among kinds.
    label: Promise
    #: What happened to ``%(name)s``.
    title: Promise
    icon: str


WORDS: Mapping[NewsKind, Words] = {
    NewsKind.JOB_SUCCEEDED: Words(
        label=_("A job has succeeded"), title=_("%(name)s has succeeded"), icon="circle-check"
    ),
    NewsKind.JOB_FAILED: Words(
        label=_("A job has failed"), title=_("%(name)s has failed"), icon="circle-x"
    ),
    NewsKind.JOB_CANCELLED: Words(
        label=_("A job was cancelled"), title=_("%(name)s was cancelled"), icon="player-stop"
    ),
    NewsKind.PIPELINE_SUCCEEDED: Words(
        label=_("A pipeline has succeeded"), title=_("%(name)s has succeeded"), icon="circle-check"
    ),
    NewsKind.PIPELINE_HELD: Words(
        label=_("A pipeline is held at a gate"),
        title=_("%(name)s is held at a gate"),
        icon="hourglass",
    ),
    NewsKind.PIPELINE_FAILED: Words(
        label=_("A pipeline has failed"), title=_("%(name)s has failed"), icon="circle-x"
    ),
    NewsKind.PIPELINE_CANCELLED: Words(
        label=_("A pipeline was cancelled"), title=_("%(name)s was cancelled"), icon="player-stop"
    ),
    NewsKind.DEPLOYMENT_READY: Words(
        label=_("A deployment is ready"), title=_("%(name)s is ready"), icon="rocket"
    ),
    NewsKind.DEPLOYMENT_TROUBLED: Words(
        label=_("A deployment is in trouble"),
        title=_("%(name)s is in trouble"),
        icon="alert-triangle",
    ),
    NewsKind.DEPLOYMENT_RECOVERED: Words(
        label=_("A deployment has recovered"), title=_("%(name)s has recovered"), icon="check"
    ),
    NewsKind.MODEL_IMPORTED: Words(
        label=_("A model has been imported"),
        title=_("%(name)s has been imported"),
        icon="stack-2",
    ),
    NewsKind.MODEL_REFUSED: Words(
        label=_("A model could not be imported"),
        title=_("%(name)s could not be imported"),
        icon="circle-x",
    ),
    NewsKind.CARD_ISOLATED: Words(
        label=_("A card or node was taken out of use"),
        title=_("%(name)s was taken out of use"),
        icon="alert-triangle",
    ),
    NewsKind.CARD_UNPROVED: Words(
        label=_("A burn-in has failed"),
        title=_("%(name)s has failed its burn-in"),
        icon="circle-x",
    ),
    NewsKind.CARD_RETURNED: Words(
        label=_("A card or node is in use again"), title=_("%(name)s is in use again"), icon="check"
    ),
    NewsKind.HEALTH_HELD_BACK: Words(
        label=_("A decision about the fleet's health waits for a person"),
        title=_("%(name)s: somebody has to decide"),
        icon="hourglass",
    ),
    NewsKind.WEBHOOK_GIVEN_UP: Words(
        label=_("A webhook could not be reached for a day"),
        title=_("The webhook %(name)s could not be reached; one delivery was given up"),
        icon="webhook",
    ),
    NewsKind.WEBHOOK_DISABLED: Words(
        label=_("A webhook was switched off"),
        title=_("The webhook %(name)s was switched off"),
        icon="webhook",
    ),
    NewsKind.TEST: Words(label=_("A test"), title=_("A test, sent by %(name)s"), icon="send"),
}

_COLOURS = {Severity.GOOD: "green", Severity.INFO: "secondary", Severity.BAD: "red"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A piece of news as its reader sees it."""

    title: str
    #: Why, where there is a reason.
    detail: str
    #: The page of the subject; empty where it has none.
    href: str
    icon: str
    #: ``green``, ``red`` or ``secondary``.
    colour: str


def told(event: Event) -> Told:
    """In the language that is active now."""
    kind = NewsKind(event.kind)
    words = WORDS[kind]
    return Told(
        title=str(words.title) % {"name": event.subject_name},
        detail=translate_message(str(event.payload.get("reason", ""))),
        href=href_of(event),
        icon=words.icon,
        colour=_COLOURS[NEWS[kind].severity],
    )


_PAGES = {
    Subject.JOB: "job",
    Subject.PIPELINE: "pipeline",
    Subject.DEPLOYMENT: "deployment",
    Subject.MODEL_VERSION: "model-version",
    Subject.WEBHOOK: "webhook",
    Subject.CARD: "card",
}


def href_of(event: Event) -> str:
    """The path of the subject's page."""
    if event.subject_kind == Subject.CLUSTER:
        return reverse("faults")
    if event.subject_kind == Subject.NODE:
        evidence = event.payload["evidence"]
        return reverse("node", args=[evidence["cluster_uid"], evidence["node"]])
    page = _PAGES.get(Subject(event.subject_kind))
    return reverse(page, args=[event.subject_uid]) if page else reverse("notification-settings")


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A notification with its words."""

    notification: Notification
    told: Told


def lines(notifications: list[Notification]) -> list[Line]:
    """In the same order; each must have its ``event`` at hand."""
    return [Line(notification=one, told=told(one.event)) for one in notifications]
