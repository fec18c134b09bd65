"""What readers do with what they were told."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from django.db import transaction

from apps.accounts.models import User
from apps.monitoring.models import Event, Notification, NotificationPreference
from apps.monitoring.selectors.notifications import notifications_of
from apps.monitoring.selectors.readers import Wish
from apps.monitoring.services.telling import Happening, event_tell
from controlplane.domain.news import NewsKind
from controlplane.persistence.models import new_uid

KEPT = timedelta(days=90)


def notifications_read(*, user: User, uids: Iterable[str] | None, at: datetime) -> int:
    """Mark those as read, or all of theirs; say how many were unread until now."""
    unread = notifications_of(user).filter(read_at=None)
    if uids is not None:
        unread = unread.filter(uid__in=list(uids))
    return unread.update(read_at=at)


def notifications_unread(*, user: User, read_at: datetime) -> int:
    """Undo: what was marked as read at that very instant is unread again; say how many those are."""
    return Notification.objects.filter(recipient=user, read_at=read_at).update(read_at=None)


@transaction.atomic
def wishes_set(*, user: User, wishes: Iterable[Wish]) -> None:
    """How they want to hear of each of those kinds."""
    for wish in wishes:
        NotificationPreference.objects.update_or_create(
            user=user,
            kind=wish.kind,
            defaults={"page": wish.page, "email": wish.email, "whole_team": wish.whole_team},
        )


def trial_send(*, user: User, at: datetime) -> None:
    """Tell them something, so that they see whether it reaches them."""
    event_tell(
        Happening(
            uid=new_uid(),
            kind=NewsKind.TEST,
            team=None,
            # Each test is a line of its own.
            subject_uid=new_uid(),
            subject_name=user.username,
            at=at,
            maker=user,
            payload={"reason": "you asked for it; nothing has happened"},
        )
    )


def news_prune(*, at: datetime) -> int:
    """Forget events from long ago with everything that tells of them; say how many."""
    _, deleted = Event.objects.filter(at__lt=at - KEPT).delete()
    return deleted.get("monitoring.Event", 0)
