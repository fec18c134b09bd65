"""Webhooks of teams: created, changed, disabled; their calls and deliveries."""

from __future__ import annotations

import hashlib
import hmac
import logging
import secrets
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db import IntegrityError, transaction
from django.utils import timezone

from apps.accounts.models import Team, User
from apps.accounts.selectors import require_permission
from apps.accounts.services import record_audit_entry
from apps.notifications.models import (
    Event,
    Webhook,
    WebhookDelivery,
    WebhookTry,
)
from apps.notifications.selectors.webhooks import SENDABLE
from apps.notifications.services.notifications import NotificationEvent, notification_send
from controlplane.domain.alerts.deliveries import (
    DELIVERY,
    MOST_GIVEN_UP,
    DeliveryEvent,
    DeliveryState,
    is_delivered,
)
from controlplane.domain.alerts.notifications import NOTIFICATION_TYPES, NotificationKind
from controlplane.domain.common.permissions import Permission
from controlplane.domain.common.reasons import NONE, FieldRefused, Reason
from controlplane.domain.outbound.egress import EgressRefused, is_same_origin
from controlplane.outbox.messages import publish_message
from controlplane.persistence.encryption import encrypt
from controlplane.persistence.models import new_uid
from controlplane.ports.outbound_http import OutboundFailed
from controlplane.web.outbound_http import configured_outbound

SECRET_PREFIX = "nfw-"  # noqa: S105 - what secrets begin with, so that scanners recognise a leaked one
MAX_ANSWER_STORED = 500
MOST_WEBHOOKS = 20


class WebhookRefused(FieldRefused):
    """It cannot be like that; ``field`` is what is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryOutcome:
    """How one try went."""

    at: datetime
    seconds: float
    #: None without a response.
    status: int | None = None
    error: str = ""
    answer: str = ""
    #: There is no use in another try: the policy forbids the address.
    final: bool = False


def _check_webhook(*, name: str, url: str, kinds: Collection[str]) -> None:
    if not name.strip():
        raise WebhookRefused("name.value.missing", "enter a name", field="name")
    try:
        configured_outbound().check(url)
    except EgressRefused as refusal:
        raise WebhookRefused(str(refusal), field="url") from None
    unknown = sorted(set(kinds) - set(SENDABLE))
    if unknown or not kinds:
        known = ", ".join(SENDABLE)
        raise WebhookRefused(
            "webhook.kind.not_supported",
            "events of type {kind} cannot be sent; choose from {kinds}",
            kind=unknown[0] if unknown else NONE,
            kinds=known,
            field="kinds",
        )


def _new_secret() -> str:
    return f"{SECRET_PREFIX}{secrets.token_urlsafe(32)}"


def webhook_create(
    *, actor: User, team: Team, name: str, url: str, kinds: Collection[str], active: bool = True
) -> tuple[Webhook, str]:
    """Create a webhook; return it with the secret that signs its requests, which cannot be read again.

    :raises PermissionRefused: unless ``actor`` may manage the team.
    :raises WebhookRefused: if a field is not valid.
    """
    require_permission(actor, Permission.MANAGE_TEAM, team=team)
    _check_webhook(name=name, url=url, kinds=kinds)
    if Webhook.objects.filter(team=team).count() >= MOST_WEBHOOKS:
        raise WebhookRefused(
            "webhook.limit.reached",
            "a team can have at most {limit} webhooks; delete one that is no longer needed",
            limit=MOST_WEBHOOKS,
            field="name",
        )
    secret = _new_secret()
    try:
        with transaction.atomic():
            webhook = Webhook.objects.create(
                team=team,
                created_by=actor,
                name=name.strip(),
                url=url,
                kinds=sorted(kinds),
                active=active,
                secret=encrypt(secret.encode()),
            )
            _audit_webhook(webhook, actor=actor, action="webhook.create")
    except IntegrityError:
        raise WebhookRefused(
            "webhook.name.already_exists",
            "the team already has a webhook named {name}; choose another name",
            name=name.strip(),
            field="name",
        ) from None
    return webhook, secret


@transaction.atomic
def webhook_change(
    *,
    webhook: Webhook,
    actor: User,
    url: str | None = None,
    kinds: Collection[str] | None = None,
    active: bool | None = None,
) -> str:
    """What is None stays. The new secret if the URL's scheme, host or port changed, else an empty text.

    The receiver before could otherwise be sent calls that the one after has recorded.

    :raises PermissionRefused: unless ``actor`` may manage the team.
    :raises WebhookRefused: if something is wrong with it.
    """
    require_permission(actor, Permission.MANAGE_TEAM, team=webhook.team)
    secret = ""
    # An address that is forbidden by now can still be paused.
    if url is not None or kinds is not None:
        stays = url is None or is_same_origin(before=webhook.url, after=url)
        webhook.url = webhook.url if url is None else url
        webhook.kinds = webhook.kinds if kinds is None else sorted(kinds)
        _check_webhook(name=webhook.name, url=webhook.url, kinds=webhook.kinds)
        webhook.save(update_fields=["url", "kinds"])
        _audit_webhook(webhook, actor=actor, action="webhook.change")
        if not stays:
            secret = webhook_secret_rotate(webhook=webhook, actor=actor)
    if active is not None:
        webhook_switch(webhook=webhook, actor=actor, active=active)
    return secret


@transaction.atomic
def webhook_switch(*, webhook: Webhook, actor: User, active: bool) -> None:
    """Pause or resume it. While it is paused, pending deliveries wait and no new ones are created.

    :raises PermissionRefused: unless ``actor`` may manage the team.
    """
    require_permission(actor, Permission.MANAGE_TEAM, team=webhook.team)
    webhook.active = active
    if active:
        webhook.given_up, webhook.error = 0, ""
    webhook.save(update_fields=["active", "given_up", "error"])
    _audit_webhook(webhook, actor=actor, action="webhook.resume" if active else "webhook.pause")


@transaction.atomic
def webhook_secret_rotate(*, webhook: Webhook, actor: User) -> str:
    """Replace the secret; it signs all further requests and cannot be read again.

    :raises PermissionRefused: unless ``actor`` may manage the team.
    """
    require_permission(actor, Permission.MANAGE_TEAM, team=webhook.team)
    secret = _new_secret()
    webhook.secret = encrypt(secret.encode())
    webhook.save(update_fields=["secret"])
    _audit_webhook(webhook, actor=actor, action="webhook.rotate")
    return secret


@transaction.atomic
def webhook_delete(*, webhook: Webhook, actor: User) -> None:
    """With everything that is on its way to it.

    :raises PermissionRefused: unless ``actor`` may manage the team.
    """
    require_permission(actor, Permission.MANAGE_TEAM, team=webhook.team)
    _audit_webhook(webhook, actor=actor, action="webhook.delete")
    webhook.delete()


def _audit_webhook(webhook: Webhook, *, actor: User, action: str) -> None:
    record_audit_entry(webhook, actor=actor, action=action, kinds=webhook.kinds)


@transaction.atomic
def webhook_test(*, webhook: Webhook, actor: User, at: datetime) -> WebhookDelivery:
    """Queue a test event that is sent immediately, without retries.

    :raises PermissionRefused: unless ``actor`` may manage the team.
    :raises WebhookRefused: while it is disabled.
    """
    require_permission(actor, Permission.MANAGE_TEAM, team=webhook.team)
    if not webhook.active:
        raise WebhookRefused(
            "notification.test.paused",
            "notifications are paused; resume them before the test",
            field="active",
        )
    event = Event.objects.create(
        uid=new_uid(),
        kind=NotificationKind.TEST,
        team=webhook.team,
        subject_kind=NOTIFICATION_TYPES[NotificationKind.TEST].subject,
        subject_uid=actor.uid,
        subject_name=actor.username,
        payload={"reason": "you asked for it; nothing has happened"},
        at=at,
    )
    delivery = WebhookDelivery.objects.create(webhook=webhook, event=event, next_try_at=at)
    publish_message("outbound.due", event_uid=event.uid)
    return delivery


@transaction.atomic
def webhook_delivery_retry(*, delivery: WebhookDelivery, actor: User, at: datetime) -> None:
    """Send it once more, with the same id and content.

    :raises PermissionRefused: unless ``actor`` may manage the team.
    :raises IllegalTransition: if it is on its way already.
    """
    require_permission(actor, Permission.MANAGE_TEAM, team=delivery.webhook.team)
    row = WebhookDelivery.objects.select_for_update(no_key=True).get(pk=delivery.pk)
    row.state = DELIVERY.after(DeliveryState(row.state), DeliveryEvent.AGAIN)
    row.tries, row.next_try_at, row.ended_at = 0, at, None
    row.save(update_fields=["state", "tries", "next_try_at", "ended_at"])
    publish_message("outbound.due", event_uid=delivery.event.uid)


@transaction.atomic
def webhook_delivery_record_outcome(
    *, delivery: WebhookDelivery, outcome: DeliveryOutcome, spread: float
) -> None:
    """Record the result of an attempt and schedule the next one, if any.

    ``spread`` is a random number from 0 to 1. If the delivery was deleted meanwhile, nothing is recorded.
    """
    webhook = (
        Webhook.objects.select_for_update(no_key=True, of=("self",))
        .select_related("team", "created_by")
        .filter(pk=delivery.webhook_id)
        .first()
    )
    row = WebhookDelivery.objects.select_for_update(no_key=True).filter(pk=delivery.pk).first()
    if webhook is None or row is None:
        return
    WebhookTry.objects.create(
        delivery=row,
        at=outcome.at,
        status=outcome.status,
        seconds=outcome.seconds,
        error=outcome.error,
        answer=outcome.answer[:MAX_ANSWER_STORED],
    )
    webhook.tried_at = outcome.at
    webhook.last_status, webhook.last_error = outcome.status, outcome.error
    # It may have been completed meanwhile: the attempt is recorded in any case.
    if row.state == DeliveryState.WAITING:
        trial = row.event.kind == NotificationKind.TEST
        state = row.record_attempt(
            error=outcome.error, at=outcome.at, spread=spread, final=outcome.final or trial
        )
        row.save()
        if state is DeliveryState.ARRIVED:
            webhook.given_up = 0
        elif state is DeliveryState.GIVEN_UP and not trial:
            _record_delivery_given_up(webhook, outcome)
    webhook.save(
        update_fields=[
            "tried_at",
            "last_status",
            "last_error",
            "given_up",
            "active",
            "error",
        ]
    )


def _record_delivery_given_up(webhook: Webhook, outcome: DeliveryOutcome) -> None:
    """Notify those who can fix it; disable the webhook if it has been unreachable for too long."""
    webhook.given_up += 1
    kind = NotificationKind.WEBHOOK_GIVEN_UP
    if webhook.given_up >= MOST_GIVEN_UP:
        webhook.active = False
        reason = Reason(
            "webhook.delivery.disabled_after_failures",
            "consecutive failed deliveries: {count}; {reason}",
            count=webhook.given_up,
            reason=outcome.error,
        )
        webhook.error = reason
        kind = NotificationKind.WEBHOOK_DISABLED
    notification_send(
        NotificationEvent(
            uid=new_uid(),
            kind=kind,
            team=webhook.team,
            subject_uid=webhook.uid,
            subject_name=webhook.name,
            at=outcome.at,
            payload={"reason": outcome.error},
        )
    )


log = logging.getLogger(__name__)


def signed_post(
    url: str, *, body: bytes, secret: bytes, kind: str, message: str, delivery: str
) -> DeliveryOutcome:
    """Call a webhook with a message of that kind, signed unless ``secret`` is empty.

    :param message: uid of the message, the same in every delivery.
    :param delivery: uid of the delivery.
    """
    timestamp = int(timezone.now().timestamp())
    headers = {
        "Content-Type": "application/json",
        "Ninefold-Kind": kind,
        "Ninefold-Id": message,
        "Ninefold-Delivery": delivery,
        "Ninefold-Timestamp": str(timestamp),
    }
    if secret:
        headers["Ninefold-Signature"] = _signature(secret, timestamp=timestamp, body=body)
    return outbound_post(url, body=body, headers=headers)


def _signature(secret: bytes, *, timestamp: int, body: bytes) -> str:
    """``sha256=<hex>``: HMAC over the timestamp, a full stop and the body."""
    message = str(timestamp).encode() + b"." + body
    return f"sha256={hmac.new(secret, message, hashlib.sha256).hexdigest()}"


def unsent(reason: str) -> DeliveryOutcome:
    """The outcome of an attempt that could not begin."""
    return DeliveryOutcome(at=timezone.now(), seconds=0.0, error=reason)


def outbound_post(url: str, *, body: bytes, headers: Mapping[str, str]) -> DeliveryOutcome:
    """How a POST went, under the policy that the settings give."""
    at, began = timezone.now(), time.monotonic()
    try:
        answer = configured_outbound().post(url, body=body, headers=headers)
    except (EgressRefused, OutboundFailed) as error:
        final = isinstance(error, EgressRefused)
        return DeliveryOutcome(
            at=at, seconds=time.monotonic() - began, error=str(error), final=final
        )
    except Exception:
        # Whatever one address provokes must not keep the others waiting.
        log.exception("an outbound call failed in an unforeseen way")
        error_text = "the call failed in an unforeseen way; the server's log has it"
        return DeliveryOutcome(at=at, seconds=time.monotonic() - began, error=error_text)
    return DeliveryOutcome(
        at=at,
        seconds=answer.seconds,
        status=answer.status,
        answer=answer.body.decode("utf-8", "replace").replace("\0", ""),
        error=_status_error(answer.status),
    )


def _status_error(status: int) -> str:
    if is_delivered(status):
        return ""
    if 300 <= status < 400:
        return Reason(
            "webhook.response.redirect",
            "the URL responded with {status}, a redirect, which is not followed; enter "
            "the final URL",
            status=status,
        )
    return Reason(
        "webhook.response.unexpected_status",
        "the URL responded with status {status}; expected 200 to 299",
        status=status,
    )
