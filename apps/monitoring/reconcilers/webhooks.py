"""Call webhooks with what waits for them.

A turn goes on while calls succeed; a webhook whose call failed is left alone until its next try is due, so
that one that hangs costs a turn one time-out however much waits for it. Calls run side by side, all writing
is done by one thread.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import SystemRandom

from django.utils import timezone

from apps.monitoring.models import WebhookDelivery
from apps.monitoring.reconcilers.calls import posted
from apps.monitoring.selectors import webhooks
from apps.monitoring.services.webhooks import Outcome, delivery_record
from controlplane.persistence.encryption import Undecryptable, decrypt
from controlplane.persistence.leases import leader_lease

LEASE = "monitoring.webhooks"
#: Longer than a round of calls, each of which has its own bound.
LEASE_TTL = timedelta(minutes=1)
AT_ONCE = 8
_TURN_SECONDS = 30.0
#: Spreads new tries, so that what failed together does not come back together.
_CHANCE = SystemRandom()


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """Everything that a thread needs to make it."""

    url: str
    body: bytes
    secret: bytes
    kind: str
    event: str
    delivery: str


def webhooks_call(*, at: datetime) -> int:
    """Try what is due; say how many deliveries arrived."""
    began, taken, failed = time.monotonic(), 0, set[int]()
    with leader_lease(LEASE, ttl=LEASE_TTL) as lease:
        if lease is None:
            return 0
        while time.monotonic() - began < _TURN_SECONDS:
            due = _round(at=at, beside=failed)
            if not due or not lease.renew(ttl=LEASE_TTL):
                break
            for delivery, outcome in zip(due, _tried(due), strict=True):
                delivery_record(delivery=delivery, outcome=outcome, spread=_CHANCE.random())
                taken += outcome.arrived
                if not outcome.arrived:
                    failed.add(delivery.webhook_id)
    return taken


def _round(*, at: datetime, beside: Iterable[int]) -> list[WebhookDelivery]:
    """The oldest delivery of each of a few webhooks: those whose last call is the longest ago."""
    first = webhooks.deliveries_due(at=at).exclude(webhook__in=list(beside))
    first = first.order_by("webhook_id", "next_try_at", "id").distinct("webhook_id")
    return sorted(first, key=_turn_of)[:AT_ONCE]


def _turn_of(delivery: WebhookDelivery) -> tuple[datetime, int]:
    tried_at = delivery.webhook.tried_at
    return (delivery.next_try_at if tried_at is None else tried_at), delivery.pk


def _tried(due: list[WebhookDelivery]) -> list[Outcome]:
    calls = [_call_of(delivery) for delivery in due]
    with ThreadPoolExecutor(max_workers=AT_ONCE, thread_name_prefix="webhook") as pool:
        return list(pool.map(_outcome, calls))


def _call_of(delivery: WebhookDelivery) -> Call | str:
    """The call, or why it cannot be made."""
    try:
        secret = decrypt(delivery.webhook.secret)
    except Undecryptable as error:
        return f"the webhook's secret cannot be read: {error}"
    return Call(
        url=delivery.webhook.url,
        body=webhooks.body_of(delivery.event),
        secret=secret,
        kind=delivery.event.kind,
        event=delivery.event.uid,
        delivery=delivery.uid,
    )


def _outcome(call: Call | str) -> Outcome:
    at = timezone.now()
    if isinstance(call, str):
        return Outcome(at=at, seconds=0.0, error=call)
    timestamp = int(at.timestamp())
    headers = {
        "Content-Type": "application/json",
        "Ninefold-Kind": call.kind,
        "Ninefold-Id": call.event,
        "Ninefold-Delivery": call.delivery,
        "Ninefold-Timestamp": str(timestamp),
        "Ninefold-Signature": webhooks.signature(
            secret=call.secret, timestamp=timestamp, body=call.body
        ),
    }
    return posted(call.url, body=call.body, headers=headers)
