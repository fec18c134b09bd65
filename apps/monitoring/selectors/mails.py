"""What waits to be e-mailed, and how a message reads."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.conf import settings
from django.db.models import Max, QuerySet
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone, translation
from django.utils.translation import ngettext

from apps.accounts.models import User
from apps.monitoring.models import Mail
from apps.monitoring.selectors.catalogue import Line, told
from controlplane.domain.deliveries import DeliveryState
from controlplane.domain.news import BURST


def mails_due(*, at: datetime) -> QuerySet[Mail]:
    """What should leave now, the longest overdue first."""
    return (
        Mail.objects.filter(state=DeliveryState.WAITING, next_try_at__lte=at)
        .select_related("recipient", "notification__event__team")
        .order_by("next_try_at", "id")
    )


def sent_lately(recipients: Iterable[int], *, at: datetime) -> Mapping[int, list[datetime]]:
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
class Letter:
    """One message, ready to be sent."""

    subject: str
    text: str
    html: str


def letter_of(mails: list[Mail]) -> Letter:
    """One message about all of them, in the language and zone of their common recipient."""
    recipient = mails[0].recipient
    language = recipient.language or settings.LANGUAGE_CODE
    with translation.override(language), timezone.override(_zone(recipient)):
        lines = [
            Line(notification=mail.notification, told=told(mail.notification.event))
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
        subject = " ".join(_subject(lines).split())
        return Letter(
            subject=f"[Ninefold] {subject}",
            text=render_to_string("monitoring/notifications_mail.txt", context),
            html=render_to_string("monitoring/notifications_mail.html", context),
        )


def _subject(lines: list[Line]) -> str:
    if len(lines) == 1:
        return lines[0].told.title
    return ngettext("%(count)d piece of news", "%(count)d pieces of news", len(lines)) % {
        "count": len(lines)
    }


def _zone(recipient: User) -> tzinfo:
    try:
        return ZoneInfo(recipient.time_zone or settings.TIME_ZONE)
    except (ZoneInfoNotFoundError, ValueError):
        return ZoneInfo(settings.TIME_ZONE)
