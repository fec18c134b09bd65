"""Controllers of alerts: evaluate every rule, and send due deliveries."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
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
from apps.notifications.reconcilers import Attempt, deliveries_send
from apps.notifications.selectors.notifications import is_mail_configured
from apps.notifications.services.webhooks import (
    DeliveryOutcome,
    outbound_post,
    signed_post,
    unsent,
)
from controlplane.domain.alerts.chat_messages import (
    ReceiverKind,
    ReceiverMessage,
    chat_post,
    response_error,
)
from controlplane.domain.common.reasons import Reason
from controlplane.domain.rules.conditions import RuleInvalid
from controlplane.persistence.encryption import DecryptionFailed, decrypt
from controlplane.persistence.leases import hold_leader_lease

log = logging.getLogger(__name__)

LEASE, SENDING = "monitoring.alerts", "monitoring.alert_deliveries"
LEASE_TTL = timedelta(minutes=1)


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
    return deliveries_send(
        SENDING,
        due=lambda: alert_deliveries_due(at=at),
        prepare=_alert_attempt,
        record=alert_delivery_record,
    )


def _alert_attempt(delivery: AlertDelivery) -> Attempt:
    receiver, notice = delivery.receiver, delivery.notice
    try:
        url = "" if receiver.url is None else decrypt(receiver.url).decode()
        secret = b"" if receiver.secret is None else decrypt(receiver.secret)
    except DecryptionFailed as error:
        reason = Reason(
            "receiver.secret.undecryptable",
            "the URL or secret of the receiver cannot be decrypted: {error}",
            error=str(error),
        )
        return partial(unsent, reason)
    kind = ReceiverKind(receiver.kind)
    if kind is ReceiverKind.WEBHOOK:
        return partial(
            signed_post,
            url,
            body=alert_webhook_body(notice),
            secret=secret,
            kind=f"alert.{notice.kind}",
            message=notice.uid,
            delivery=delivery.uid,
        )
    with translation.override(receiver.language or settings.LANGUAGE_CODE):
        message = alert_notice_message(notice)
    if kind is ReceiverKind.EMAIL:
        return partial(_send_email, message, addresses=receiver.addresses)
    return partial(_post_to_chat, kind, message, url=url, secret=secret)


def _post_to_chat(
    kind: ReceiverKind, message: ReceiverMessage, *, url: str, secret: bytes
) -> DeliveryOutcome:
    timestamp = int(timezone.now().timestamp())
    post = chat_post(kind, message, url=url, secret=secret, timestamp=timestamp)
    headers = {"Content-Type": "application/json; charset=utf-8"}
    outcome = outbound_post(post.url, body=post.body, headers=headers)
    return replace(outcome, error=outcome.error or response_error(kind, outcome.answer))


def _send_email(message: ReceiverMessage, *, addresses: Sequence[str]) -> DeliveryOutcome:
    at, began = timezone.now(), time.monotonic()
    if not is_mail_configured():
        reason = Reason(
            "receiver.mail.server_not_configured",
            "no mail server is configured; ask an administrator to configure one",
        )
        return unsent(reason)
    # A name with a line break must not become a header of its own.
    subject = " ".join(message.title.split())
    mail = EmailMessage(
        subject=f"[Ninefold] {subject}",
        body="\n".join([*message.lines, "", message.link]),
        from_email=settings.NINEFOLD_EMAIL_FROM,
        to=addresses,
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
