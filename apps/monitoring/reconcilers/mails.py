"""Send e-mail that waits, person by person; what comes in a burst leaves in one message."""

from __future__ import annotations

import logging
from collections import defaultdict, deque
from datetime import datetime, timedelta
from email.utils import make_msgid, parseaddr
from random import SystemRandom
from smtplib import (
    SMTPDataError,
    SMTPException,
    SMTPRecipientsRefused,
    SMTPResponseException,
)

from django.conf import settings
from django.core.mail import EmailMultiAlternatives, get_connection
from django.core.mail.backends.base import BaseEmailBackend

from apps.monitoring.models import Mail
from apps.monitoring.selectors.mails import letter_of, mails_due, sent_lately
from apps.monitoring.selectors.readers import mail_configured
from apps.monitoring.services.mails import mails_failed, mails_hold, mails_sent
from controlplane.domain.news import BURST, MAILS_IN_A_BURST
from controlplane.persistence.leases import LeaderLease, leader_lease

log = logging.getLogger(__name__)

LEASE = "monitoring.mails"
LEASE_TTL = timedelta(minutes=2)
_IN_ONE_TURN = 500
#: Spreads new tries, so that what failed together does not come back together.
_CHANCE = SystemRandom()


class _ServerSilent(Exception):
    """The mail server takes nothing at all now; there is no use in the next message."""


def mails_send(*, at: datetime) -> int:
    """Send what is due; say how many messages left."""
    if not mail_configured():
        return 0
    with leader_lease(LEASE, ttl=LEASE_TTL) as lease:
        return _turn(lease, at=at) if lease is not None else 0


def _turn(lease: LeaderLease, *, at: datetime) -> int:
    waiting: dict[int, list[Mail]] = defaultdict(list)
    for mail in mails_due(at=at)[:_IN_ONE_TURN]:
        waiting[mail.recipient_id].append(mail)
    lately = sent_lately(waiting, at=at)
    letters = deque(
        letter
        for recipient, mails in waiting.items()
        for letter in _letters(mails, lately=lately[recipient], at=at)
    )
    sent, connection = 0, get_connection()
    try:
        while letters and lease.renew(ttl=LEASE_TTL):
            sent += _send(letters[0], connection, at=at)
            letters.popleft()
    except _ServerSilent as silent:
        # What is on hold was not tried, and what was refused before has lost its try already.
        unsent = [mail for letter in letters for mail in letter]
        mails_failed(mails=unsent, error=str(silent), at=at, spread=_CHANCE.random())
        log.warning("the mail server takes nothing", extra={"error": str(silent)})
    finally:
        connection.close()
    return sent


def _letters(mails: list[Mail], *, lately: list[datetime], at: datetime) -> list[list[Mail]]:
    """How the mails of one person leave: each alone, or all together where that would be too many.

    ``lately`` is when messages left for them within the window, the newest first.
    """
    recipient = mails[0].recipient
    if not recipient.is_active or not recipient.email:
        reason = "nobody reads there any more"
        mails_failed(mails=mails, error=reason, at=at, spread=0.0, final=True)
        return []
    if len(lately) >= MAILS_IN_A_BURST:
        # When this one leaves the window there is room for one message with everything.
        mails_hold(mails=mails, until=lately[MAILS_IN_A_BURST - 1] + BURST)
        return []
    if len(lately) + len(mails) > MAILS_IN_A_BURST:
        return [mails]
    return [[mail] for mail in mails]


def _send(mails: list[Mail], connection: BaseEmailBackend, *, at: datetime) -> int:
    """:raises _ServerSilent: if the server took nothing and would take nothing else either."""
    letter = letter_of(mails)
    message_id = make_msgid(domain=parseaddr(settings.NINEFOLD_EMAIL_FROM)[1].partition("@")[2])
    message = EmailMultiAlternatives(
        subject=letter.subject,
        body=letter.text,
        from_email=settings.NINEFOLD_EMAIL_FROM,
        to=[mails[0].recipient.email],
        connection=connection,
        # So that no answering machine answers a machine.
        headers={"Message-ID": message_id, "Auto-Submitted": "auto-generated"},
    )
    message.attach_alternative(letter.html, "text/html")
    try:
        message.send()
    except SMTPRecipientsRefused as refused:
        code, text = next(iter(refused.recipients.values()))
        reason = f"the mail server refused the address: {code} {text.decode('utf-8', 'replace')}"
        mails_failed(mails=mails, error=reason, at=at, spread=_CHANCE.random(), final=code >= 500)
        connection.close()
        return 0
    except SMTPDataError as refused:
        reason = f"the mail server refused the message: {_words(refused)}"
        final = refused.smtp_code >= 500
        mails_failed(mails=mails, error=reason, at=at, spread=_CHANCE.random(), final=final)
        return 0
    except ValueError as error:
        # An address that is none: it must not stop the turn, and with it everybody's e-mail.
        reason = f"the address or the message cannot be sent: {error}"
        mails_failed(mails=mails, error=reason, at=at, spread=0.0, final=True)
        return 0
    except SMTPResponseException as refused:
        raise _ServerSilent(f"the mail server answered {_words(refused)}") from refused
    except (SMTPException, OSError) as error:
        raise _ServerSilent(f"the mail server cannot be reached: {error}") from error
    mails_sent(mails=mails, message_id=message_id, at=at)
    return 1


def _words(refused: SMTPResponseException) -> str:
    said = refused.smtp_error
    text = said.decode("utf-8", "replace") if isinstance(said, bytes) else said
    return f"{refused.smtp_code} {text}"
