"""E-mail on its way: what was sent, what failed, when to try again."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from django.db import transaction
from django.db.models import F, QuerySet

from apps.monitoring.models import Mail
from controlplane.domain.deliveries import DELIVERY, DeliveryEvent, DeliveryState, pause_after

_WAITING = DeliveryState.WAITING


def mails_sent(*, mails: Collection[Mail], message_id: str, at: datetime) -> None:
    """The mail server took one message that tells of all of them."""
    state = DELIVERY.after(_WAITING, DeliveryEvent.ARRIVE)
    _rows(mails).update(
        state=state, sent_at=at, message_id=message_id, error="", tries=F("tries") + 1
    )


@transaction.atomic
def mails_failed(
    *, mails: Collection[Mail], error: str, at: datetime, spread: float, final: bool = False
) -> None:
    """They are tried again later, unless ``final`` says that it is no use or they were tried enough."""
    for mail in _rows(mails).select_for_update(no_key=True):
        mail.tries += 1
        mail.error = error
        pause = pause_after(tries=mail.tries, spread=spread)
        if final or pause is None:
            mail.state = DELIVERY.after(_WAITING, DeliveryEvent.GIVE_UP)
        else:
            mail.next_try_at = at + pause
        mail.save(update_fields=["tries", "error", "state", "next_try_at"])


def mails_hold(*, mails: Collection[Mail], until: datetime) -> None:
    """Too many have gone to that person lately: these wait and leave together."""
    _rows(mails).update(next_try_at=until)


def _rows(mails: Collection[Mail]) -> QuerySet[Mail]:
    return Mail.objects.filter(pk__in=[mail.pk for mail in mails], state=_WAITING)
