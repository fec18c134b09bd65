"""Controllers of alerts: evaluate every rule, and send due deliveries."""

from __future__ import annotations

import logging
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from random import SystemRandom
from smtplib import SMTPException

from django.conf import settings
from django.core.mail import EmailMessage
from django.db import transaction
from django.utils import timezone, translation

from apps.monitoring.models import AlertDelivery, AlertRule
from apps.monitoring.selectors.alerts import (
    alert_deliveries_due,
    alert_notice_message,
    alert_rule_spec_of,
    alert_webhook_body,
)
from apps.monitoring.selectors.rule_samples import rule_alert_samples
from apps.monitoring.services.alert_evaluation import alert_rule_evaluate, alert_rule_record_failure
from apps.monitoring.services.alerts import alert_delivery_record, default_alert_rules_sync
from apps.notifications.selectors.notifications import is_mail_configured
from apps.notifications.selectors.webhooks import webhook_signature
from apps.notifications.services.webhooks import DeliveryOutcome, post_webhook_delivery
from controlplane.domain.alerts import chat_messages
from controlplane.domain.alerts.chat_messages import (
    ReceiverKind,
    ReceiverMessage,
    ReceiverPost,
    response_error,
)
from controlplane.domain.common.reasons import Reason
from controlplane.domain.rules.conditions import RuleInvalid
from controlplane.persistence.encryption import DecryptionFailed, decrypt
from controlplane.persistence.leases import hold_leader_lease

log = logging.getLogger(__name__)

LEASE, SENDING = "monitoring.alerts", "monitoring.alert_deliveries"
LEASE_TTL = timedelta(minutes=1)
AT_ONCE = 8
_TURN_SECONDS = 30.0
#: Jitter of retries, so that deliveries that failed together are not repeated together.
_CHANCE = SystemRandom()


def alerts_reconcile(*, at: datetime) -> int:
    """Evaluate all rules now; return the number of notices. A failing rule does not affect others."""
    notified = 0
    with hold_leader_lease(LEASE, ttl=LEASE_TTL) as lease:
        if lease is None:
            return 0
        default_alert_rules_sync(at=at)
        for rule in AlertRule.objects.all():
            if not lease.renew(ttl=LEASE_TTL):
                break
            notified += _evaluate_rule(rule, at=at)
    return notified


def _evaluate_rule(rule: AlertRule, *, at: datetime) -> int:
    try:
        # A failed query must not spoil the connection's transaction for the rules behind it.
        with transaction.atomic():
            samples = rule_alert_samples(alert_rule_spec_of(rule), at=at) if rule.enabled else ()
        return alert_rule_evaluate(rule=rule, samples=samples, at=at)
    except RuleInvalid as invalid:
        alert_rule_record_failure(
            rule=rule,
            reason=Reason(
                "alert_rule.definition.invalid", "the rule is invalid: {error}", error=str(invalid)
            ),
        )
    except Exception:
        log.exception("an alert rule could not be judged", extra={"rule": rule.name})
        alert_rule_record_failure(
            rule=rule,
            reason=Reason(
                "alert_rule.evaluation.failed",
                "the metric of the rule could not be read; the log of the worker has the details",
            ),
        )
    return 0


def alert_deliveries_send(*, at: datetime) -> int:
    """Send due deliveries; return the number of delivered messages."""
    began, taken, failed = time.monotonic(), 0, set[int]()
    with hold_leader_lease(SENDING, ttl=LEASE_TTL) as lease:
        if lease is None:
            return 0
        while time.monotonic() - began < _TURN_SECONDS:
            due = [one for one in alert_deliveries_due(at=at) if one.receiver_id not in failed][
                :AT_ONCE
            ]
            if not due or not lease.renew(ttl=LEASE_TTL):
                break
            posts = [_build_delivery_payload(delivery) for delivery in due]
            with ThreadPoolExecutor(max_workers=AT_ONCE, thread_name_prefix="alert") as pool:
                outcomes = list(pool.map(_send_delivery_payload, posts))
            for delivery, outcome in zip(due, outcomes, strict=True):
                alert_delivery_record(delivery=delivery, outcome=outcome, spread=_CHANCE.random())
                taken += not outcome.error
                if outcome.error:
                    failed.add(delivery.receiver_id)
    return taken


@dataclass(frozen=True, slots=True, kw_only=True)
class _AlertDeliveryPayload:
    """Everything that a thread needs to send it."""

    kind: ReceiverKind
    message: ReceiverMessage
    #: For programs, in addition to the message.
    body: bytes
    notice_kind: str
    notice: str
    delivery: str
    url: str = ""
    secret: bytes = b""
    addresses: tuple[str, ...] = ()


def _build_delivery_payload(delivery: AlertDelivery) -> _AlertDeliveryPayload | str:
    """What to send, or why it cannot be sent."""
    receiver, notice = delivery.receiver, delivery.notice
    try:
        url = b"" if receiver.url is None else decrypt(receiver.url)
        secret = b"" if receiver.secret is None else decrypt(receiver.secret)
    except DecryptionFailed as error:
        return Reason(
            "receiver.secret.undecryptable",
            "the URL or secret of the receiver cannot be decrypted: {error}",
            error=str(error),
        )
    with translation.override(receiver.language or settings.LANGUAGE_CODE):
        message = alert_notice_message(notice)
    return _AlertDeliveryPayload(
        kind=ReceiverKind(receiver.kind),
        message=message,
        body=alert_webhook_body(notice),
        notice_kind=f"alert.{notice.kind}",
        notice=notice.uid,
        delivery=delivery.uid,
        url=url.decode(),
        secret=secret,
        addresses=tuple(receiver.addresses),
    )


def _send_delivery_payload(post: _AlertDeliveryPayload | str) -> DeliveryOutcome:
    at = timezone.now()
    if isinstance(post, str):
        return DeliveryOutcome(at=at, seconds=0.0, error=post)
    if post.kind is ReceiverKind.EMAIL:
        return _send_email(post)
    timestamp = int(at.timestamp())
    headers = {"Content-Type": "application/json; charset=utf-8"}
    if post.kind is ReceiverKind.WEBHOOK:
        headers |= {
            "Ninefold-Kind": post.notice_kind,
            "Ninefold-Id": post.notice,
            "Ninefold-Delivery": post.delivery,
            "Ninefold-Timestamp": str(timestamp),
        }
        if post.secret:
            headers["Ninefold-Signature"] = webhook_signature(
                secret=post.secret, timestamp=timestamp, body=post.body
            )
    call = _webhook_request_of_payload(post, timestamp=timestamp)
    outcome = post_webhook_delivery(call.url, body=call.body, headers=headers)
    if outcome.error:
        return outcome
    return replace(outcome, error=response_error(post.kind, outcome.answer))


def _webhook_request_of_payload(post: _AlertDeliveryPayload, *, timestamp: int) -> ReceiverPost:
    if post.kind is ReceiverKind.FEISHU:
        return chat_messages.feishu_post(
            post.message, url=post.url, secret=post.secret, timestamp=timestamp
        )
    if post.kind is ReceiverKind.DINGTALK:
        return chat_messages.dingtalk_post(
            post.message, url=post.url, secret=post.secret, timestamp=timestamp
        )
    if post.kind is ReceiverKind.SLACK:
        return chat_messages.slack_post(post.message, url=post.url)
    return ReceiverPost(url=post.url, body=post.body)


def _send_email(post: _AlertDeliveryPayload) -> DeliveryOutcome:
    at, began = timezone.now(), time.monotonic()
    if not is_mail_configured():
        reason = Reason(
            "receiver.mail.server_not_configured",
            "no mail server is configured; ask an administrator to configure one",
        )
        return DeliveryOutcome(at=at, seconds=0.0, error=reason)
    # A name with a line break must not become a header of its own.
    subject = " ".join(post.message.title.split())
    mail = EmailMessage(
        subject=f"[Ninefold] {subject}",
        body="\n".join([*post.message.lines, "", post.message.link]),
        from_email=settings.NINEFOLD_EMAIL_FROM,
        to=list(post.addresses),
        headers={"Auto-Submitted": "auto-generated"},
    )
    refusal = ""
    try:
        mail.send()
    except (SMTPException, OSError, ValueError) as failure:
        refusal = Reason(
            "receiver.mail.refused",
            "the mail server did not accept the message: {error}",
            error=str(failure),
        )
    return DeliveryOutcome(at=at, seconds=time.monotonic() - began, error=refusal)
