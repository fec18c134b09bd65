"""News: visible if and only if its change is, and delivered at least once."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from config.tasks import SUBSCRIBED_TOPICS
from controlplane.outbox import messages
from controlplane.outbox.models import OutboxMessage
from tests.integration.threads import at_once

Sent = list[tuple[str, dict[str, Any]]]


def into(sent: Sent) -> Callable[[str, dict[str, Any]], None]:
    return lambda topic, payload: sent.append((topic, payload))


def publish(number: int) -> None:
    with transaction.atomic():
        messages.publish_message("claim.released", number=number)


@pytest.mark.django_db(transaction=True)
def test_a_message_is_rolled_back_with_its_transaction() -> None:
    with transaction.atomic():
        messages.publish_message("claim.released", number=1)
        transaction.set_rollback(True)

    publish(2)

    sent: Sent = []
    assert messages.relay_messages(into(sent)) == 1
    assert sent == [("claim.released", {"number": 2})]


@pytest.mark.django_db(transaction=True)
def test_publishing_outside_a_transaction_is_a_mistake() -> None:
    with pytest.raises(RuntimeError, match="inside a transaction"):
        messages.publish_message("claim.released")


@pytest.mark.django_db(transaction=True)
def test_messages_are_sent_in_order_and_once() -> None:
    for number in range(5):
        publish(number)
    sent: Sent = []

    assert messages.relay_messages(into(sent), limit=3) == 3
    assert messages.relay_messages(into(sent), limit=3) == 2
    assert messages.relay_messages(into(sent)) == 0

    assert [payload["number"] for _, payload in sent] == [0, 1, 2, 3, 4]


@pytest.mark.django_db(transaction=True)
def test_a_relay_that_dies_between_sending_and_marking_sends_again() -> None:
    for number in range(3):
        publish(number)
    sent: Sent = []

    def die_at_the_last(topic: str, payload: dict[str, Any]) -> None:
        sent.append((topic, payload))
        if payload["number"] == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        messages.relay_messages(die_at_the_last)
    assert OutboxMessage.objects.filter(delivered_at=None).count() == 3

    assert messages.relay_messages(into(sent)) == 3
    assert [payload["number"] for _, payload in sent] == [0, 1, 2, 0, 1, 2]


@pytest.mark.django_db(transaction=True)
def test_messages_stay_pending_while_the_broker_is_down() -> None:
    publish(1)

    def refuse(topic: str, payload: dict[str, Any]) -> None:
        raise ConnectionError("no broker")

    with pytest.raises(ConnectionError):
        messages.relay_messages(refuse)

    sent: Sent = []
    assert messages.relay_messages(into(sent)) == 1


@pytest.mark.django_db(transaction=True)
def test_messages_without_subscribers_do_not_block_others_and_are_sent_later() -> None:
    with transaction.atomic():
        messages.publish_message("moon.full", number=0)
    publish(1)
    sent: Sent = []

    assert messages.relay_messages(into(sent), limit=1) == 1
    assert messages.relay_messages(into(sent), limit=1) == 0
    assert sent == [("claim.released", {"number": 1})]
    found = messages.outbox_backlog()
    assert (found.messages, found.unsubscribed) == (1, {"moon.full": 1})

    messages.set_subscribed_topics([*SUBSCRIBED_TOPICS, "moon.full"])
    try:
        assert messages.outbox_backlog().unsubscribed == {}
        assert messages.relay_messages(into(sent)) == 1
    finally:
        messages.set_subscribed_topics(SUBSCRIBED_TOPICS)


@pytest.mark.django_db(transaction=True)
def test_two_relays_at_once_send_each_message_once() -> None:
    for number in range(60):
        publish(number)
    sent: Sent = []

    def work() -> None:
        while messages.relay_messages(into(sent), limit=7):
            pass

    at_once(work, work)

    while messages.relay_messages(into(sent)):
        pass
    assert sorted(payload["number"] for _, payload in sent) == list(range(60))


@pytest.mark.django_db
def test_only_messages_past_their_retention_are_pruned() -> None:
    for _ in range(3):
        publish(1)
    fresh, old, _ = OutboxMessage.objects.order_by("id")
    now = timezone.now()
    OutboxMessage.objects.filter(pk=fresh.pk).update(delivered_at=now)
    OutboxMessage.objects.filter(pk=old.pk).update(delivered_at=now - timedelta(days=2))

    assert messages.delete_expired_messages() == 1

    assert not OutboxMessage.objects.filter(pk=old.pk).exists()
    assert OutboxMessage.objects.count() == 2


@pytest.mark.django_db(transaction=True)
def test_the_relay_is_woken_once_per_committed_transaction() -> None:
    woken: list[int] = []
    messages.set_after_publish_callbacks(lambda: woken.append(OutboxMessage.objects.count()))
    try:
        with transaction.atomic():
            messages.publish_message("claim.released", number=1)
            messages.publish_messages("claim.released", [{"number": 2}, {"number": 3}])
            assert not woken
        assert woken == [3]
        with transaction.atomic():
            messages.publish_message("claim.released", number=4)
            transaction.set_rollback(True)
        assert woken == [3]
    finally:
        messages.set_after_publish_callbacks()


@pytest.mark.django_db(transaction=True)
def test_a_failing_wake_up_does_not_fail_the_publisher() -> None:
    def fail() -> None:
        raise OSError("no broker")

    messages.set_after_publish_callbacks(fail)
    try:
        publish(1)
    finally:
        messages.set_after_publish_callbacks()
    assert OutboxMessage.objects.count() == 1
