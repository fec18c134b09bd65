"""Questions about what people were told."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import QuerySet

from apps.accounts.models import User
from apps.accounts.selectors import RequestUser
from apps.monitoring.models import Mail, Notification
from apps.monitoring.selectors.catalogue import Line, lines
from controlplane.domain.deliveries import DeliveryState

IN_THE_BELL = 6
#: Counting stops here: the bell says "99+".
MOST_COUNTED = 99


def notifications_of(user: RequestUser) -> QuerySet[Notification]:
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
class Bell:
    """What the bell of every page shows."""

    unread: int
    newest: list[Line]

    @property
    def count_text(self) -> str:
        return f"{MOST_COUNTED}+" if self.unread > MOST_COUNTED else str(self.unread)

    @property
    def latest_unread(self) -> Line | None:
        """What a toast may tell of."""
        return next((one for one in self.newest if one.notification.read_at is None), None)


def bell(user: User) -> Bell:
    """In two queries."""
    return Bell(unread=unread_count(user), newest=lines(list(notifications_of(user)[:IN_THE_BELL])))


def mail_trouble(user: User) -> Mail | None:
    """The newest e-mail to them, if it has not left yet because of an error or was given up."""
    newest = Mail.objects.filter(recipient=user).order_by("-id").first()
    arrived = newest is None or newest.state == DeliveryState.ARRIVED
    return None if arrived or newest is None or not newest.error else newest
