"""Notifications as their reader sees them, recipients and preferences, and due e-mail with its content."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.conf import settings
from django.db.models import Max, Q, QuerySet
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone, translation
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from apps.accounts.models import Membership, Team, User
from apps.accounts.selectors import (
    RequestUser,
    team_roles_granting_permission,
    users_with_permission,
)
from apps.notifications.models import Event, Mail, Notification, NotificationPreference
from controlplane.domain.alerts.deliveries import DeliveryState
from controlplane.domain.alerts.notifications import (
    BURST,
    NOTIFICATION_TYPES,
    NotificationAudience,
    NotificationChannel,
    NotificationKind,
    NotificationSeverity,
    NotificationSubject,
)
from controlplane.domain.common.permissions import Permission
from controlplane.web.reasons import render_reason


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryPreference:
    """The delivery preference of a user for one kind."""

    kind: NotificationKind
    page: bool
    email: bool
    #: All events of their teams, not only those of their own objects.
    whole_team: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationRecipient:
    user: User
    page: bool
    email: bool


def default_preference(kind: NotificationKind) -> DeliveryPreference:
    notification_type = NOTIFICATION_TYPES[kind]
    return DeliveryPreference(
        kind=kind,
        page=NotificationChannel.PAGE in notification_type.channels,
        email=NotificationChannel.EMAIL in notification_type.channels,
        whole_team=notification_type.whole_team,
    )


def delivery_preferences_of(user: User) -> list[DeliveryPreference]:
    """One for each kind that its readers can choose about, in the order of the catalogue."""
    rows = {row.kind: row for row in NotificationPreference.objects.filter(user=user)}
    return [
        _delivery_preference(kind, rows.get(kind))
        for kind, notification_type in NOTIFICATION_TYPES.items()
        if notification_type.optional
    ]


def _delivery_preference(
    kind: NotificationKind, row: NotificationPreference | None
) -> DeliveryPreference:
    if row is None:
        return default_preference(kind)
    return DeliveryPreference(kind=kind, page=row.page, email=row.email, whole_team=row.whole_team)


def is_mail_configured() -> bool:
    """Whether this installation sends e-mail at all."""
    return bool(settings.NINEFOLD_EMAIL_FROM)


def recipients_of(
    kind: NotificationKind, *, team: Team | None, creator: User | None, actor_name: str
) -> list[NotificationRecipient]:
    """All recipients by any channel, without the user who caused the event."""
    audience = NOTIFICATION_TYPES[kind].audience
    candidates = _candidate_recipients(audience, team=team, creator=creator)
    preferences = _delivery_preferences(kind, candidates)
    readers = []
    for user in candidates:
        preference = preferences[user.pk]
        involved = (
            user == creator or audience is not NotificationAudience.CREATOR or preference.whole_team
        )
        knows = user.username == actor_name and audience is not NotificationAudience.ASKER
        email = preference.email and bool(user.email) and is_mail_configured()
        if involved and not knows and (preference.page or email):
            readers.append(NotificationRecipient(user=user, page=preference.page, email=email))
    return readers


def _candidate_recipients(
    audience: NotificationAudience, *, team: Team | None, creator: User | None
) -> list[User]:
    active = User.objects.filter(is_active=True)
    own = Q(pk=creator.pk) if creator is not None else Q(pk=None)
    if audience is NotificationAudience.OPERATORS:
        return list(users_with_permission(Permission.OPERATE_FLEET).order_by("pk"))
    if audience is NotificationAudience.ASKER or team is None:
        return list(active.filter(own))
    memberships = Membership.objects.filter(team=team)
    if audience is NotificationAudience.ADMINISTRATORS:
        memberships = memberships.filter(
            role__in=team_roles_granting_permission(Permission.MANAGE_TEAM)
        )
        return list(active.filter(pk__in=memberships.values("user_id")).order_by("pk"))
    # An administrator of the company creates objects in teams of which they are no member.
    inside = Q(pk__in=memberships.values("user_id")) | (own & Q(is_superuser=True))
    return list(active.filter(inside).order_by("pk"))


def _delivery_preferences(
    kind: NotificationKind, users: Iterable[User]
) -> Mapping[int, DeliveryPreference]:
    rows = {
        row.user_id: row for row in NotificationPreference.objects.filter(kind=kind, user__in=users)
    }
    return {user.pk: _delivery_preference(kind, rows.get(user.pk)) for user in users}


IN_THE_BELL = 6
#: Counting stops here: the bell shows "99+".
MOST_COUNTED = 99


def notifications_of_user(user: RequestUser) -> QuerySet[Notification]:
    """What is on their pages, the newest first; of the team alone to which a token confines them."""
    if not isinstance(user, User):
        return Notification.objects.none()
    rows = Notification.objects.filter(recipient=user, on_page=True)
    if user.confined_to is not None:
        rows = rows.filter(event__team=user.confined_to)
    return rows.select_related("event__team").order_by("-at", "-id")


def unread_count(user: User) -> int:
    """How many they have not read, up to one more than :data:`MOST_COUNTED`."""
    unread = Notification.objects.filter(recipient=user, on_page=True, read_at=None)
    return unread.order_by()[: MOST_COUNTED + 1].count()


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationBell:
    """What the bell of every page shows."""

    unread: int
    newest: list[NotificationListItem]

    @property
    def count_text(self) -> str:
        return f"{MOST_COUNTED}+" if self.unread > MOST_COUNTED else str(self.unread)

    @property
    def latest_unread(self) -> NotificationListItem | None:
        """The notification that a toast may show."""
        return next((one for one in self.newest if one.notification.read_at is None), None)


def notification_bell(user: User) -> NotificationBell:
    """In two queries."""
    return NotificationBell(
        unread=unread_count(user),
        newest=render_notification_list(list(notifications_of_user(user)[:IN_THE_BELL])),
    )


def email_error(user: User) -> Mail | None:
    """The newest e-mail to them, if it has not left yet because of an error or was given up."""
    newest = Mail.objects.filter(recipient=user).order_by("-id").first()
    arrived = newest is None or newest.state == DeliveryState.ARRIVED
    return None if arrived or newest is None or not newest.error else newest


def due_emails(*, at: datetime) -> QuerySet[Mail]:
    """What should leave now, the longest overdue first."""
    return (
        Mail.objects.filter(state=DeliveryState.WAITING, next_try_at__lte=at)
        .select_related("recipient", "notification__event__team")
        .order_by("next_try_at", "id")
    )


def recently_sent_emails(
    recipients: Iterable[int], *, at: datetime
) -> Mapping[int, list[datetime]]:
    """When each message of the last minutes left, by its recipient's key, the newest first."""
    messages = (
        Mail.objects.filter(recipient__in=list(recipients), sent_at__gt=at - BURST)
        .order_by()
        .values("recipient_id", "message_id")
        .annotate(left=Max("sent_at"))
        .order_by("-left")
    )
    lately: dict[int, list[datetime]] = defaultdict(list)
    for message in messages:
        lately[message["recipient_id"]].append(message["left"])
    return lately


@dataclass(frozen=True, slots=True, kw_only=True)
class EmailContent:
    """One message, ready to be sent."""

    subject: str
    text: str
    html: str


def email_content(mails: list[Mail]) -> EmailContent:
    """One message about all of them, in the language and zone of their common recipient."""
    recipient = mails[0].recipient
    language = recipient.language or settings.LANGUAGE_CODE
    with translation.override(language), timezone.override(_recipient_time_zone(recipient)):
        lines = [
            NotificationListItem(
                notification=mail.notification,
                rendered=render_notification(mail.notification.event),
            )
            for mail in mails
        ]
        context = {
            "lines": lines,
            "base": settings.NINEFOLD_PUBLIC_URL,
            "settings_href": reverse("notification-settings"),
            "name": recipient.get_full_name() or recipient.username,
            "language": language,
        }
        # A name with a line break must not become a header of its own.
        subject = " ".join(_email_subject(lines).split())
        return EmailContent(
            subject=f"[Ninefold] {subject}",
            text=render_to_string("notifications/email.txt", context),
            html=render_to_string("notifications/email.html", context),
        )


def _email_subject(lines: list[NotificationListItem]) -> str:
    if len(lines) == 1:
        return lines[0].rendered.title
    return ngettext("%(count)d notification", "%(count)d notifications", len(lines)) % {
        "count": len(lines)
    }


def _recipient_time_zone(recipient: User) -> tzinfo:
    try:
        return ZoneInfo(recipient.time_zone or settings.TIME_ZONE)
    except (ZoneInfoNotFoundError, ValueError):
        return ZoneInfo(settings.TIME_ZONE)


class NotificationKindLabels(NamedTuple):
    #: The kind, as listed in preferences.
    label: Promise
    #: What happened to ``%(name)s``.
    title: Promise
    icon: str


NOTIFICATION_LABELS: Mapping[NotificationKind, NotificationKindLabels] = {
    NotificationKind.JOB_SUCCEEDED: NotificationKindLabels(
        _("A job has succeeded"), _("%(name)s has succeeded"), "circle-check"
    ),
    NotificationKind.JOB_FAILED: NotificationKindLabels(
        _("A job has failed"), _("%(name)s has failed"), "circle-x"
    ),
    NotificationKind.JOB_CANCELLED: NotificationKindLabels(
        _("A job was cancelled"), _("%(name)s was cancelled"), "player-stop"
    ),
    NotificationKind.PIPELINE_SUCCEEDED: NotificationKindLabels(
        _("A pipeline has succeeded"), _("%(name)s has succeeded"), "circle-check"
    ),
    NotificationKind.PIPELINE_HELD: NotificationKindLabels(
        _("A pipeline is waiting for approval at a gate"),
        _("%(name)s is waiting for approval at a gate"),
        "hourglass",
    ),
    NotificationKind.PIPELINE_FAILED: NotificationKindLabels(
        _("A pipeline has failed"), _("%(name)s has failed"), "circle-x"
    ),
    NotificationKind.PIPELINE_CANCELLED: NotificationKindLabels(
        _("A pipeline was cancelled"), _("%(name)s was cancelled"), "player-stop"
    ),
    NotificationKind.DEPLOYMENT_READY: NotificationKindLabels(
        _("A deployment is ready"), _("%(name)s is ready"), "rocket"
    ),
    NotificationKind.DEPLOYMENT_DEGRADED: NotificationKindLabels(
        _("A deployment is degraded"), _("%(name)s is degraded"), "alert-triangle"
    ),
    NotificationKind.DEPLOYMENT_RECOVERED: NotificationKindLabels(
        _("A deployment has recovered"), _("%(name)s has recovered"), "check"
    ),
    NotificationKind.MODEL_IMPORTED: NotificationKindLabels(
        _("A model has been imported"), _("%(name)s has been imported"), "stack-2"
    ),
    NotificationKind.MODEL_REFUSED: NotificationKindLabels(
        _("A model could not be imported"), _("%(name)s could not be imported"), "circle-x"
    ),
    NotificationKind.CARD_ISOLATED: NotificationKindLabels(
        _("Card or node isolated"), _("%(name)s was isolated"), "alert-triangle"
    ),
    NotificationKind.CARD_UNPROVED: NotificationKindLabels(
        _("A burn-in has failed"), _("%(name)s has failed its burn-in"), "circle-x"
    ),
    NotificationKind.CARD_RETURNED: NotificationKindLabels(
        _("A card or node is in use again"), _("%(name)s was returned to service"), "check"
    ),
    NotificationKind.HEALTH_HELD_BACK: NotificationKindLabels(
        _("Health action requires a decision"), _("%(name)s: decision required"), "hourglass"
    ),
    NotificationKind.WEBHOOK_GIVEN_UP: NotificationKindLabels(
        _("Webhook delivery failed"), _("Delivery to webhook %(name)s failed"), "webhook"
    ),
    NotificationKind.WEBHOOK_DISABLED: NotificationKindLabels(
        _("A webhook was disabled"), _("The webhook %(name)s was disabled"), "webhook"
    ),
    NotificationKind.TEST: NotificationKindLabels(
        _("Test notification"), _("Test notification, sent by %(name)s"), "send"
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
