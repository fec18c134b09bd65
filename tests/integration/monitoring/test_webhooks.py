"""Webhooks are called at least once, signed, again later if they must, and never inside our network."""

from __future__ import annotations

import hashlib
import hmac
import json
from datetime import timedelta

import pytest
from django.utils import timezone
from pytest_django import Settings

from apps.accounts.selectors import PermissionRefused
from apps.notifications.models import Notification, Webhook, WebhookDelivery
from apps.notifications.reconcilers import AT_ONCE, webhooks_call
from apps.notifications.services import webhooks
from controlplane.domain.alerts.deliveries import MOST_GIVEN_UP, PAUSES, DeliveryState
from controlplane.domain.alerts.notifications import NotificationKind
from controlplane.domain.common.state_machine import IllegalTransition
from controlplane.domain.outbound.egress import EgressPolicy
from tests.cases import for_each_case
from tests.contract.web_servers import WebServer, web_server
from tests.integration.monitoring.conftest import Office
from tests.integration.monitoring.notifications import notify

FAILED = NotificationKind.JOB_FAILED
NOW = timezone.now().replace(microsecond=0)


def hook(
    office: Office, server: WebServer, *, path: str = "/hook", name: str = "chat"
) -> tuple[Webhook, str]:
    return webhooks.webhook_create(
        actor=office.vera,
        team=office.team,
        name=name,
        url=f"http://127.0.0.1:{server.port}{path}",
        kinds=[FAILED, NotificationKind.MODEL_IMPORTED],
    )


def fail(office: Office, number: int = 0) -> None:
    notify(
        FAILED,
        team=office.team,
        creator=office.ada,
        at=NOW,
        subject=f"{number:032x}",
        name="训练 addresses",
        reason="the disk is full",
        uid=f"{number + 1:032x}",
    )


def test_an_event_arrives_signed_and_with_what_a_program_needs(
    office: Office, receiver: WebServer, settings: Settings
) -> None:
    settings.NINEFOLD_PUBLIC_URL = "https://ninefold.example.com"
    webhook, secret = hook(office, receiver)
    fail(office)
    assert webhooks_call(at=NOW) == 1
    assert webhooks_call(at=NOW) == 0
    (request,) = receiver.requests
    assert json.loads(request.body) == {
        "id": f"{1:032x}",
        "kind": "job.failed",
        "at": NOW.isoformat(),
        "team": "maps",
        "subject": {"kind": "job", "uid": f"{0:032x}", "name": "训练 addresses"},
        "reason": "the disk is full",
        "link": f"https://ninefold.example.com/jobs/{0:032x}",
    }
    signed = request.headers["ninefold-timestamp"].encode() + b"." + request.body
    digest = hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
    assert request.headers["ninefold-signature"] == f"sha256={digest}"
    assert request.headers["ninefold-id"] == f"{1:032x}"
    webhook.refresh_from_db()
    assert (webhook.last_status, webhook.last_error) == (200, "")
    assert secret.encode() not in bytes(webhook.secret)


def test_only_the_kinds_that_were_chosen_and_only_the_teams_own_are_sent(
    office: Office, receiver: WebServer
) -> None:
    hook(office, receiver)
    notify(NotificationKind.JOB_SUCCEEDED, team=office.team, creator=office.ada, at=NOW)
    other = office.eve.teams.get()
    notify(FAILED, team=other, creator=office.eve, at=NOW, subject="e" * 32)
    assert webhooks_call(at=NOW) == 0
    assert receiver.requests == []


def test_a_call_that_fails_is_made_again_with_the_same_id_and_content(
    office: Office, receiver: WebServer
) -> None:
    hook(office, receiver)
    receiver.answers["/hook"] = (503, {}, b"busy")
    fail(office)
    assert webhooks_call(at=NOW) == 0
    delivery = WebhookDelivery.objects.get()
    assert (delivery.state, delivery.tries) == (DeliveryState.WAITING, 1)
    assert webhooks_call(at=NOW) == 0, "its time has not come"
    receiver.answers.clear()
    assert webhooks_call(at=timezone.now() + 2 * PAUSES[0]) == 1
    first, second = receiver.requests
    assert first.body == second.body
    assert first.headers["ninefold-id"] == second.headers["ninefold-id"]
    (tried, arrived) = delivery.history.all()
    assert (tried.status, tried.answer) == (503, "busy")
    assert tried.error == "the URL responded with status 503; expected 200 to 299"
    assert (arrived.status, arrived.error) == (200, "")


def test_a_redirect_does_not_count_as_arrived(office: Office, receiver: WebServer) -> None:
    hook(office, receiver)
    receiver.answers["/hook"] = (307, {"Location": "http://169.254.169.254/"}, b"")
    fail(office)
    assert webhooks_call(at=NOW) == 0
    assert "a redirect, which is not followed" in Webhook.objects.get().last_error
    assert len(receiver.requests) == 1


def give_up(office: Office, number: int) -> None:
    fail(office, number)
    at = timezone.now()
    for _ in range(len(PAUSES) + 1):
        webhooks_call(at=at)
        at += timedelta(hours=10)


def test_after_a_day_it_is_given_up_and_the_administrators_of_the_team_know(
    office: Office, receiver: WebServer
) -> None:
    hook(office, receiver)
    receiver.answers["/hook"] = (500, {}, b"")
    give_up(office, 0)
    delivery = WebhookDelivery.objects.get()
    assert (delivery.state, delivery.history.count()) == (DeliveryState.GIVEN_UP, len(PAUSES) + 1)
    notifications = Notification.objects.filter(kind=NotificationKind.WEBHOOK_GIVEN_UP)
    assert [row.recipient for row in notifications] == [office.vera]
    assert Webhook.objects.get().active


def test_after_several_in_a_row_it_is_switched_off_until_somebody_lets_it_go_on(
    office: Office, receiver: WebServer
) -> None:
    hook(office, receiver)
    receiver.answers["/hook"] = (500, {}, b"")
    for number in range(MOST_GIVEN_UP):
        give_up(office, number)
    webhook = Webhook.objects.get()
    assert not webhook.active
    assert webhook.error.startswith("consecutive failed deliveries: 3")
    notifications = Notification.objects.filter(kind=NotificationKind.WEBHOOK_DISABLED)
    assert [row.recipient for row in notifications] == [office.vera]
    fail(office, 99)
    assert WebhookDelivery.objects.count() == MOST_GIVEN_UP
    webhooks.webhook_switch(webhook=webhook, actor=office.vera, active=True)
    receiver.answers.clear()
    fail(office, 100)
    assert webhooks_call(at=timezone.now()) == 1


def test_while_paused_nothing_is_sent_and_what_waited_leaves_afterwards(
    office: Office, receiver: WebServer
) -> None:
    webhook, _ = hook(office, receiver)
    fail(office)
    webhooks.webhook_switch(webhook=webhook, actor=office.vera, active=False)
    assert webhooks_call(at=NOW) == 0
    webhooks.webhook_switch(webhook=webhook, actor=office.vera, active=True)
    assert webhooks_call(at=NOW) == 1


def test_one_that_fails_costs_a_turn_one_call_however_much_waits_for_it(
    office: Office, receiver: WebServer
) -> None:
    hook(office, receiver, path="/down", name="down")
    hook(office, receiver, path="/up", name="up")
    receiver.answers["/down"] = (500, {}, b"")
    for number in range(5):
        fail(office, number)
    assert webhooks_call(at=NOW) == 5
    assert [one.path for one in receiver.requests].count("/down") == 1


def test_an_address_that_turns_inward_later_is_not_called_and_given_up_at_once(
    office: Office, receiver: WebServer, settings: Settings
) -> None:
    hook(office, receiver)
    settings.NINEFOLD_EGRESS = EgressPolicy()
    fail(office)
    assert webhooks_call(at=NOW) == 0
    delivery = WebhookDelivery.objects.get()
    assert delivery.state == DeliveryState.GIVEN_UP
    assert "the scheme http is not allowed; allowed are https" in delivery.history.get().error
    assert receiver.requests == []


@for_each_case(
    ("url", "reason"),
    [
        ("http://hooks.example.com", "the scheme http is not allowed; allowed are https"),
        ("https://169.254.169.254/latest", "metadata service"),
        ("https://[::ffff:127.0.0.1]/", "loopback"),
        ("https://localhost:5432/", "port 5432"),
        ("hooks", "enter the full URL"),
    ],
)
def test_an_address_that_may_not_be_called_is_refused_when_it_is_entered(
    office: Office, url: str, reason: str
) -> None:
    with pytest.raises(webhooks.WebhookRefused, match=reason) as refusal:
        webhooks.webhook_create(
            actor=office.vera, team=office.team, name="x", url=url, kinds=[FAILED]
        )
    assert refusal.value.field == "url"


@for_each_case("kinds", [[], ["webhook.disabled"], ["job.exploded"]])
def test_what_cannot_be_sent_cannot_be_chosen(
    office: Office, receiver: WebServer, kinds: list[str]
) -> None:
    url = f"http://127.0.0.1:{receiver.port}/"
    with pytest.raises(webhooks.WebhookRefused, match=r"choose from job\.succeeded"):
        webhooks.webhook_create(actor=office.vera, team=office.team, name="x", url=url, kinds=kinds)


def test_a_name_is_given_once_in_a_team(office: Office, receiver: WebServer) -> None:
    hook(office, receiver)
    with pytest.raises(webhooks.WebhookRefused, match="already has a webhook named chat"):
        hook(office, receiver)


def test_who_may_not_manage_the_team_changes_nothing(office: Office, receiver: WebServer) -> None:
    webhook, _ = hook(office, receiver)
    for actor in (office.ada, office.eve):
        with pytest.raises(PermissionRefused):
            webhooks.webhook_delete(webhook=webhook, actor=actor)
        with pytest.raises(PermissionRefused):
            webhooks.webhook_secret_rotate(webhook=webhook, actor=actor)
        with pytest.raises(PermissionRefused):
            webhooks.webhook_test(webhook=webhook, actor=actor, at=NOW)


def test_a_test_is_tried_once_and_tells_nobody(office: Office, settings: Settings) -> None:
    with web_server() as gone:
        settings.NINEFOLD_EGRESS = EgressPolicy.parse(
            allow=["127.0.0.0/8"], schemes=["http"], ports=[gone.port]
        )
    webhook, _ = hook(office, gone)
    delivery = webhooks.webhook_test(webhook=webhook, actor=office.vera, at=NOW)
    assert webhooks_call(at=NOW) == 0
    delivery.refresh_from_db()
    assert delivery.state == DeliveryState.GIVEN_UP
    assert "cannot be reached" in delivery.history.get().error
    assert Notification.objects.count() == 0


def test_a_delivery_can_be_sent_again(office: Office, receiver: WebServer) -> None:
    hook(office, receiver)
    fail(office)
    delivery = WebhookDelivery.objects.get()
    with pytest.raises(IllegalTransition, match="a delivery that is waiting cannot be sent again"):
        webhooks.webhook_delivery_retry(delivery=delivery, actor=office.vera, at=NOW)
    webhooks_call(at=NOW)
    webhooks.webhook_delivery_retry(delivery=delivery, actor=office.vera, at=NOW)
    assert webhooks_call(at=NOW) == 1
    assert len({one.headers["ninefold-id"] for one in receiver.requests}) == 1
    assert len(receiver.requests) == 2


def test_calls_are_signed_with_the_newest_secret(office: Office, receiver: WebServer) -> None:
    webhook, _old = hook(office, receiver)
    secret = webhooks.webhook_secret_rotate(webhook=webhook, actor=office.vera)
    fail(office)
    webhooks_call(at=NOW)
    (request,) = receiver.requests
    signed = request.headers["ninefold-timestamp"].encode() + b"." + request.body
    digest = hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
    assert request.headers["ninefold-signature"] == f"sha256={digest}"


def test_a_backlog_of_one_keeps_no_other_waiting(office: Office, receiver: WebServer) -> None:
    hook(office, receiver, path="/busy", name="busy")
    for number in range(AT_ONCE * 4):
        fail(office, number)
    hook(office, receiver, path="/quick", name="quick")
    notify(FAILED, team=office.team, creator=office.ada, at=NOW + timedelta(seconds=1))
    webhooks_call(at=NOW + timedelta(seconds=2))
    assert "/quick" in [one.path for one in receiver.requests[:AT_ONCE]]
