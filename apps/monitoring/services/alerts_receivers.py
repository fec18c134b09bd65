"""Who is told of alerts: receivers, the routes to them, and what is on its way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction

from apps.accounts.models import User
from apps.accounts.services import audit
from apps.fleet.selectors import require_operator
from apps.monitoring.models import AlertDelivery, AlertNotice, AlertReceiver, AlertRoute
from apps.monitoring.services.alerts import AlertRefused
from apps.monitoring.services.webhooks import Outcome
from controlplane.domain.alerts.groups import NoticeKind
from controlplane.domain.alerts.messages import ReceiverKind
from controlplane.domain.alerts.rules import MOST_MATCHERS, Severity, matcher_read
from controlplane.domain.deliveries import DELIVERY, DeliveryEvent, DeliveryState, pause_after
from controlplane.domain.outbound.egress import EgressRefused
from controlplane.outbox.messages import publish
from controlplane.persistence.encryption import encrypt, reencrypted
from controlplane.web.outbound import outbound

MOST_RECEIVERS, MOST_ROUTES, MOST_ADDRESSES = 50, 50, 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiverAsk:
    """What somebody wants a receiver to be."""

    name: str
    kind: ReceiverKind
    url: str = ""
    secret: str = ""
    addresses: tuple[str, ...] = ()
    language: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteAsk:
    """What somebody wants a route to be."""

    name: str
    severity: Severity
    matchers: tuple[str, ...] = ()
    receivers: Sequence[AlertReceiver] = ()
    enabled: bool = True


def receiver_create(*, ask: ReceiverAsk, actor: User) -> AlertReceiver:
    """:raises PermissionRefused: unless ``actor`` operates the fleet.
    :raises AlertRefused: if something is wrong with it.
    """
    require_operator(actor)
    _check_receiver(ask)
    if AlertReceiver.objects.count() >= MOST_RECEIVERS:
        message = f"there are {MOST_RECEIVERS} receivers already; delete one that is not needed"
        raise AlertRefused(message, field="name")
    try:
        with transaction.atomic():
            receiver = AlertReceiver.objects.create(
                name=ask.name.strip(),
                kind=ask.kind,
                url=encrypt(ask.url.encode()) if ask.url else None,
                secret=encrypt(ask.secret.encode()) if ask.secret else None,
                addresses=list(ask.addresses),
                language=ask.language,
                made_by_name=actor.username,
            )
            _audit(receiver, actor=actor, action="alert_receiver.create")
    except IntegrityError:
        message = f"there is a receiver named {ask.name.strip()} already; choose another name"
        raise AlertRefused(message, field="name") from None
    return receiver


def _check_receiver(ask: ReceiverAsk) -> None:
    if not ask.name.strip():
        raise AlertRefused("give it a name, so that others know who is told", field="name")
    if ask.kind is not ReceiverKind.EMAIL:
        if not ask.url:
            raise AlertRefused("give the address that is to be called", field="url")
        try:
            outbound().check(ask.url)
        except EgressRefused as refusal:
            raise AlertRefused(str(refusal), field="url") from None
        return
    if not ask.addresses or len(ask.addresses) > MOST_ADDRESSES:
        raise AlertRefused(f"give 1 to {MOST_ADDRESSES} e-mail addresses", field="addresses")
    for address in ask.addresses:
        try:
            validate_email(address)
        except ValidationError:
            message = f"{address[:80]!r} is no e-mail address; write name@example.com"
            raise AlertRefused(message, field="addresses") from None


@transaction.atomic
def receiver_switch(*, receiver: AlertReceiver, actor: User, active: bool) -> None:
    """Paused, what is on its way to it waits, and what happens is not queued.

    :raises PermissionRefused: unless ``actor`` operates the fleet.
    """
    require_operator(actor)
    receiver.active = active
    receiver.save(update_fields=["active"])
    action = "alert_receiver.resume" if active else "alert_receiver.pause"
    _audit(receiver, actor=actor, action=action)


@transaction.atomic
def receiver_delete(*, receiver: AlertReceiver, actor: User) -> None:
    """With everything that is on its way to it.

    :raises PermissionRefused: unless ``actor`` operates the fleet.
    """
    require_operator(actor)
    _audit(receiver, actor=actor, action="alert_receiver.delete")
    receiver.delete()


@transaction.atomic
def receiver_test(*, receiver: AlertReceiver, actor: User, at: datetime) -> AlertDelivery:
    """A test message, on its way at once and tried only once.

    :raises PermissionRefused: unless ``actor`` operates the fleet.
    :raises AlertRefused: while it is paused.
    """
    require_operator(actor)
    if not receiver.active:
        raise AlertRefused("it is paused; let it go on before you test it", field="active")
    notice = AlertNotice.objects.create(
        group=None, kind=NoticeKind.TEST, content={"by": actor.username}, at=at
    )
    delivery = AlertDelivery.objects.create(receiver=receiver, notice=notice, next_try_at=at)
    publish("outbound.due", event_uid=notice.uid)
    return delivery


def receiver_secrets_reencrypt() -> int:
    """Encrypt by the first key what another one encrypted; say of how many receivers.

    :raises Undecryptable: if no key fits one of them.
    """
    count = 0
    for key in AlertReceiver.objects.order_by("pk").values_list("pk", flat=True):
        with transaction.atomic():
            row = AlertReceiver.objects.select_for_update(no_key=True).filter(pk=key).first()
            if row is None:
                continue
            sealed = {
                name: again
                for name in ("url", "secret")
                if (kept := getattr(row, name)) is not None
                and (again := reencrypted(kept)) is not None
            }
            count += AlertReceiver.objects.filter(pk=key).update(**sealed) if sealed else 0
    return count


def route_create(*, ask: RouteAsk, actor: User) -> AlertRoute:
    """:raises PermissionRefused: unless ``actor`` operates the fleet.
    :raises AlertRefused: if something is wrong with it.
    """
    require_operator(actor)
    if AlertRoute.objects.count() >= MOST_ROUTES:
        message = f"there are {MOST_ROUTES} routes already; delete one that is not needed"
        raise AlertRefused(message, field="name")
    return _route_keep(AlertRoute(), ask=ask, actor=actor, action="alert_route.create")


def route_change(*, route: AlertRoute, ask: RouteAsk, actor: User) -> AlertRoute:
    """:raises PermissionRefused: unless ``actor`` operates the fleet.
    :raises AlertRefused: if something is wrong with it.
    """
    require_operator(actor)
    return _route_keep(route, ask=ask, actor=actor, action="alert_route.change")


def _route_keep(route: AlertRoute, *, ask: RouteAsk, actor: User, action: str) -> AlertRoute:
    if not ask.name.strip():
        raise AlertRefused("give it a name, so that others know what it is for", field="name")
    if not ask.receivers:
        raise AlertRefused(
            "choose at least one receiver; without one nobody is told", field="receivers"
        )
    if len(ask.matchers) > MOST_MATCHERS:
        raise AlertRefused(f"give at most {MOST_MATCHERS} conditions", field="matchers")
    try:
        matchers = [str(matcher_read(text)) for text in ask.matchers]
    except ValueError as error:
        raise AlertRefused(str(error), field="matchers") from None
    route.name, route.severity = ask.name.strip(), ask.severity
    route.matchers, route.enabled = matchers, ask.enabled
    try:
        with transaction.atomic():
            route.save()
            route.receivers.set(ask.receivers)
            audit(
                actor=actor,
                action=action,
                uid=route.uid,
                name=route.name,
                severity=route.severity,
                matchers=route.matchers,
                receivers=[receiver.name for receiver in ask.receivers],
                enabled=route.enabled,
            )
    except IntegrityError:
        message = f"there is a route named {ask.name.strip()} already; choose another name"
        raise AlertRefused(message, field="name") from None
    return route


@transaction.atomic
def route_delete(*, route: AlertRoute, actor: User) -> None:
    """:raises PermissionRefused: unless ``actor`` operates the fleet."""
    require_operator(actor)
    audit(actor=actor, action="alert_route.delete", uid=route.uid, name=route.name)
    route.delete()


def _audit(receiver: AlertReceiver, *, actor: User, action: str) -> None:
    audit(actor=actor, action=action, uid=receiver.uid, name=receiver.name, kind=receiver.kind)


@transaction.atomic
def alert_delivery_record(*, delivery: AlertDelivery, outcome: Outcome, spread: float) -> None:
    """Keep how a try went and say when the next one is, if there is one.

    ``spread`` is a random number from 0 to 1. Deleted or settled meanwhile, nothing is kept.
    """
    row = AlertDelivery.objects.select_for_update(no_key=True).filter(pk=delivery.pk).first()
    if row is None or row.state != DeliveryState.WAITING:
        return
    row.status, row.error = outcome.status, outcome.error
    row.tries += 1
    if not outcome.error:
        row.state = DELIVERY.after(DeliveryState.WAITING, DeliveryEvent.ARRIVE)
        row.ended_at = outcome.at
    else:
        pause = pause_after(tries=row.tries, spread=spread)
        if pause is None or outcome.final or delivery.notice.kind == NoticeKind.TEST:
            row.state = DELIVERY.after(DeliveryState.WAITING, DeliveryEvent.GIVE_UP)
            row.ended_at = outcome.at
        else:
            row.next_try_at = outcome.at + pause
    row.save(update_fields=["state", "tries", "status", "error", "next_try_at", "ended_at"])
    AlertReceiver.objects.filter(pk=row.receiver_id).update(
        tried_at=outcome.at, last_error=outcome.error
    )
