"""Controllers of e-mail and webhooks: send what is due. E-mail of a burst leaves in one message a recipient.

A run calls receivers while calls succeed; one whose call failed is left alone until its next attempt is due, so
that one that hangs costs a run one time-out however many deliveries are due. Calls run side by side, all writing
is done by one thread.
"""

from __future__ import annotations

import logging
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from email.utils import make_msgid, parseaddr
from functools import partial
from operator import call
from random import SystemRandom
from smtplib import (
    SMTPDataError,
    SMTPException,
    SMTPRecipientsRefused,
    SMTPResponseException,
)
from typing import TypeVar

from django.conf import settings
from django.core.mail import EmailMultiAlternatives, get_connection
from django.core.mail.backends.base import BaseEmailBackend

from apps.notifications.models import CallDelivery, Mail, WebhookDelivery
from apps.notifications.selectors.notifications import (
    due_emails,
    email_content,
    is_mail_configured,
    recently_sent_emails,
)
from apps.notifications.selectors.webhooks import delivery_body, due_webhook_deliveries
from apps.notifications.services.notifications import (
    emails_postpone,
    emails_record_failed,
    emails_record_sent,
)
from apps.notifications.services.webhooks import (
    DeliveryOutcome,
    signed_post,
    unsent,
    webhook_delivery_record_outcome,
)
from controlplane.domain.alerts.notifications import BURST, MAILS_IN_A_BURST
from controlplane.domain.common.reasons import Reason, ReasonedError
from controlplane.persistence.encryption import DecryptionFailed, decrypt
from controlplane.persistence.leases import LeaderLease, hold_leader_lease

log = logging.getLogger(__name__)

EMAIL_LEASE = "monitoring.mails"
EMAIL_LEASE_TTL = timedelta(minutes=2)
_IN_ONE_TURN = 500
#: Jitter of retries, so that deliveries that failed together are not repeated together.
_JITTER = SystemRandom()


class _MailServerUnresponsive(ReasonedError):
    """The mail server accepts no messages now; further messages are not tried."""


def emails_send(*, at: datetime) -> int:
    """Send due e-mails; return the number of messages."""
    if not is_mail_configured():
        return 0
    with hold_leader_lease(EMAIL_LEASE, ttl=EMAIL_LEASE_TTL) as lease:
        return _send_pending_emails(lease, at=at) if lease is not None else 0


def _send_pending_emails(lease: LeaderLease, *, at: datetime) -> int:
    waiting: dict[int, list[Mail]] = defaultdict(list)
    for mail in due_emails(at=at)[:_IN_ONE_TURN]:
        waiting[mail.recipient_id].append(mail)
    lately = recently_sent_emails(waiting, at=at)
    letters = deque(
        letter
        for recipient, mails in waiting.items()
        for letter in _group_into_emails(mails, lately=lately[recipient], at=at)
    )
    sent, connection = 0, get_connection()
    try:
        while letters and lease.renew(ttl=EMAIL_LEASE_TTL):
            sent += _send_emails(letters[0], connection, at=at)
            letters.popleft()
    except _MailServerUnresponsive as silent:
        # What is on hold was not tried, and what was refused before has lost its try already.
        unsent = [mail for letter in letters for mail in letter]
        emails_record_failed(mails=unsent, error=str(silent), at=at, spread=_JITTER.random())
        log.warning("the mail server takes nothing", extra={"error": str(silent)})
    finally:
        connection.close()
    return sent


def _group_into_emails(
    mails: list[Mail], *, lately: list[datetime], at: datetime
) -> list[list[Mail]]:
    """Group the e-mails of one user: one message each, or one for all if there would be too many.

    ``lately`` has the times of their messages within the window, newest first.
    """
    recipient = mails[0].recipient
    if not recipient.is_active or not recipient.email:
        reason = Reason(
            "notification.recipient.unavailable",
            "the recipient is inactive or has no e-mail address",
        )
        emails_record_failed(mails=mails, error=reason, at=at, spread=0.0, final=True)
        return []
    if len(lately) >= MAILS_IN_A_BURST:
        # When this one leaves the window there is room for one message with everything.
        emails_postpone(mails=mails, until=lately[MAILS_IN_A_BURST - 1] + BURST)
        return []
    if len(lately) + len(mails) > MAILS_IN_A_BURST:
        return [mails]
    return [[mail] for mail in mails]


def _send_emails(mails: list[Mail], connection: BaseEmailBackend, *, at: datetime) -> int:
    """:raises _MailServerUnresponsive: if the server accepted nothing and would accept nothing else either."""
    letter = email_content(mails)
    message_id = make_msgid(domain=parseaddr(settings.NINEFOLD_EMAIL_FROM)[1].partition("@")[2])
    message = EmailMultiAlternatives(
        subject=letter.subject,
        body=letter.text,
        from_email=settings.NINEFOLD_EMAIL_FROM,
        to=[mails[0].recipient.email],
        connection=connection,
        # Prevents automatic replies.
        headers={"Message-ID": message_id, "Auto-Submitted": "auto-generated"},
    )
    message.attach_alternative(letter.html, "text/html")
    try:
        message.send()
    except SMTPRecipientsRefused as refused:
        code, text = next(iter(refused.recipients.values()))
        reason = Reason(
            "notification.mail.address_refused",
            "the mail server refused the address: {status} {error}",
            status=code,
            error=text.decode("utf-8", "replace"),
        )
        emails_record_failed(
            mails=mails, error=reason, at=at, spread=_JITTER.random(), final=code >= 500
        )
        connection.close()
        return 0
    except SMTPDataError as refused:
        reason = Reason(
            "notification.mail.message_refused",
            "the mail server refused the message: {error}",
            error=_smtp_error_text(refused),
        )
        final = refused.smtp_code >= 500
        emails_record_failed(mails=mails, error=reason, at=at, spread=_JITTER.random(), final=final)
        return 0
    except ValueError as error:
        # An invalid address must not stop the run, and with it all other e-mails.
        reason = Reason(
            "notification.mail.invalid",
            "the message cannot be sent to this address: {error}",
            error=str(error),
        )
        emails_record_failed(mails=mails, error=reason, at=at, spread=0.0, final=True)
        return 0
    except SMTPResponseException as refused:
        raise _MailServerUnresponsive(
            "notification.mail.server_error",
            "the mail server answered {error}",
            error=_smtp_error_text(refused),
        ) from refused
    except (SMTPException, OSError) as error:
        raise _MailServerUnresponsive(
            "notification.mail.server_unreachable",
            "the mail server cannot be reached: {error}",
            error=str(error),
        ) from error
    emails_record_sent(mails=mails, message_id=message_id, at=at)
    return 1


def _smtp_error_text(refused: SMTPResponseException) -> str:
    said = refused.smtp_error
    text = said.decode("utf-8", "replace") if isinstance(said, bytes) else said
    return f"{refused.smtp_code} {text}"


WEBHOOK_LEASE = "monitoring.webhooks"
#: Longer than a round of calls, each of which has its own bound.
DELIVERY_LEASE_TTL = timedelta(minutes=1)
AT_ONCE = 8
_TURN_SECONDS = 30.0

Delivery = TypeVar("Delivery", bound=CallDelivery)
#: One attempt, which a thread makes: it uses no database.
Attempt = Callable[[], DeliveryOutcome]


def deliveries_send(
    lease: str,
    *,
    due: Callable[[], Iterable[Delivery]],
    prepare: Callable[[Delivery], Attempt],
    record: Callable[..., None],
) -> int:
    """Attempt deliveries while some are due; return the number of successful ones.

    :param lease: name of the leader lease.
    :param due: at most one due delivery of each receiver.
    :param record: service that stores the outcome of an attempt.
    """
    began, delivered, failed = time.monotonic(), 0, set[int]()
    with hold_leader_lease(lease, ttl=DELIVERY_LEASE_TTL) as held:
        if held is None:
            return 0
        while time.monotonic() - began < _TURN_SECONDS:
            batch = [one for one in due() if one.receiver_pk not in failed][:AT_ONCE]
            if not batch or not held.renew(ttl=DELIVERY_LEASE_TTL):
                break
            attempts = [prepare(delivery) for delivery in batch]
            with ThreadPoolExecutor(max_workers=AT_ONCE, thread_name_prefix="delivery") as pool:
                outcomes = list(pool.map(call, attempts))
            for delivery, outcome in zip(batch, outcomes, strict=True):
                record(delivery=delivery, outcome=outcome, spread=_JITTER.random())
                if outcome.error:
                    failed.add(delivery.receiver_pk)
                else:
                    delivered += 1
    return delivered


def webhooks_call(*, at: datetime) -> int:
    """Send due webhook deliveries; return the number of successful ones."""
    return deliveries_send(
        WEBHOOK_LEASE,
        due=lambda: due_webhook_deliveries(at=at),
        prepare=_webhook_attempt,
        record=webhook_delivery_record_outcome,
    )


def _webhook_attempt(delivery: WebhookDelivery) -> Attempt:
    webhook, event = delivery.webhook, delivery.event
    try:
        secret = decrypt(webhook.secret)
    except DecryptionFailed as error:
        reason = Reason(
            "webhook.secret.undecryptable",
            "the secret of the webhook cannot be decrypted: {error}",
            error=str(error),
        )
        return partial(unsent, reason)
    return partial(
        signed_post,
        webhook.url,
        body=delivery_body(event),
        secret=secret,
        kind=event.kind,
        message=event.uid,
        delivery=delivery.uid,
    )
