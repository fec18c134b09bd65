"""What fires reaches chats, programs and people, in order, signed, and again later if it must."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from datetime import timedelta
from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.utils import timezone
from pytest_django import Settings

from apps.accounts.selectors import PermissionRefused
from apps.monitoring.models import AlertDelivery, AlertReceiver, AlertRoute
from apps.monitoring.reconcilers.alerts import alert_deliveries_send
from apps.monitoring.services import alerts as services
from apps.monitoring.services.alerts import (
    AlertReceiverRequest,
    AlertRouteRequest,
    AlertSettingsRefused,
)
from controlplane.domain.alerts.chat_messages import ReceiverKind
from controlplane.domain.alerts.deliveries import DeliveryState
from controlplane.domain.alerts.rules import AlertSeverity
from controlplane.persistence.encryption import decrypt, secrets_reencrypt
from tests.cases import for_each_case
from tests.contract.web_servers import WebServer
from tests.integration.monitoring.alerts import after, create_receiver, create_rule, seen
from tests.integration.monitoring.conftest import Office, Postbox
from tests.integration.monitoring.notifications import deliver_messages

NOON = after(0)
#: Long after whatever the turns made.
LATER = timezone.now() + timedelta(days=2)


def sent(server: WebServer) -> list[Any]:
    return [json.loads(request.body) for request in server.requests]


def test_a_program_gets_the_episode_signed_from_beginning_to_end(
    office: Office, receiver: WebServer, settings: Settings
) -> None:
    settings.NINEFOLD_PUBLIC_URL = "https://ninefold.example.com"
    create_receiver(office.vera, receiver, secret="s3cret")
    rule = create_rule(office.vera)
    seen(rule, 1, 2, at=NOON)
    assert alert_deliveries_send(at=after(1)) == 1
    assert alert_deliveries_send(at=after(1)) == 0
    seen(rule, at=after(5))
    assert alert_deliveries_send(at=after(6)) == 1
    fired, ended = sent(receiver)
    assert (fired["kind"], ended["kind"]) == ("alert.firing", "alert.resolved")
    assert fired["episode"] == ended["episode"]
    assert (fired["rule"], fired["severity"], fired["count"]) == ("hot", "critical", 2)
    assert fired["labels"] == {"cluster": "west"}
    assert fired["alerts"][0]["labels"] == {"cluster": "west", "node": "n", "card": "1"}
    assert fired["link"] == f"https://ninefold.example.com/fleet/alerts/{fired['episode']}"
    request = receiver.requests[0]
    signed = request.headers["ninefold-timestamp"].encode() + b"." + request.body
    digest = hmac.new(b"s3cret", signed, hashlib.sha256).hexdigest()
    assert request.headers["ninefold-signature"] == f"sha256={digest}"
    assert request.headers["ninefold-id"] == fired["id"]


def test_news_of_a_notice_sends_it_at_once_and_once(office: Office, receiver: WebServer) -> None:
    create_receiver(office.vera, receiver)
    seen(create_rule(office.vera), 1, at=NOON)
    deliver_messages("outbound.due")
    assert [one["kind"] for one in sent(receiver)] == ["alert.firing"]


def test_feishu_is_signed_in_the_body_and_dingtalk_in_the_address(
    office: Office, receiver: WebServer
) -> None:
    receiver.answers["/feishu"] = (200, {}, b'{"code":0,"msg":"success"}')
    create_receiver(office.vera, receiver, kind=ReceiverKind.FEISHU, secret="s", language="zh-hans")
    create_receiver(office.vera, receiver, kind=ReceiverKind.DINGTALK, secret="s")
    create_receiver(office.vera, receiver, kind=ReceiverKind.SLACK)
    seen(create_rule(office.vera, title="过热"), 1, at=NOON)
    alert_deliveries_send(at=after(1))
    by_path = {request.path.partition("?")[0]: request for request in receiver.requests}
    feishu = json.loads(by_path["/feishu"].body)
    key = f"{feishu['timestamp']}\ns".encode()
    sign = base64.b64encode(hmac.new(key, b"", hashlib.sha256).digest()).decode()
    assert feishu["sign"] == sign
    assert feishu["card"]["header"]["template"] == "red"
    assert "timestamp=" in by_path["/dingtalk"].path
    slack = json.loads(by_path["/slack"].body)
    assert slack["text"] == "过热: 1 alert"
    states = dict(AlertDelivery.objects.values_list("receiver__kind", "state"))
    # "fine" is no answer of DingTalk's.
    assert states == {"feishu": "arrived", "slack": "arrived", "dingtalk": "waiting"}


def test_people_get_an_e_mail_in_their_language(office: Office, postbox: Postbox) -> None:
    request = AlertReceiverRequest(
        name="night shift",
        kind=ReceiverKind.EMAIL,
        addresses=("ada@example.com", "bob@example.com"),
        language="en",
    )
    receiver = services.alert_receiver_create(request=request, actor=office.vera)
    services.alert_route_create(
        request=AlertRouteRequest(name="all", severity=AlertSeverity.INFO, receivers=[receiver]),
        actor=office.vera,
    )
    seen(create_rule(office.vera, title="Too\r\nBcc: eve@example.com hot"), 1, at=NOON)
    assert alert_deliveries_send(at=after(1)) == 1
    (mail,) = postbox.messages
    assert mail["subject"] == "[Ninefold] Too Bcc: eve@example.com hot: 1 alert"
    assert mail["to"] == "ada@example.com, bob@example.com"
    assert "cluster=west node=n card=1: 95 °C" in postbox.texts()[0]


def test_an_end_never_overtakes_its_beginning(office: Office, receiver: WebServer) -> None:
    receiver.answers["/webhook"] = (500, {}, b"")
    create_receiver(office.vera, receiver)
    rule = create_rule(office.vera)
    seen(rule, 1, at=NOON)
    alert_deliveries_send(at=after(1))
    seen(rule, at=after(5))
    assert alert_deliveries_send(at=after(6)) == 0
    assert [one["kind"] for one in sent(receiver)] == ["alert.firing"]
    receiver.answers.clear()
    assert alert_deliveries_send(at=LATER) == 2
    kinds = [one["kind"] for one in sent(receiver)]
    assert kinds == ["alert.firing", "alert.firing", "alert.resolved"]
    row = AlertReceiver.objects.get()
    assert row.last_error == ""


def test_one_that_hangs_or_refuses_keeps_nobody_waiting(
    office: Office, receiver: WebServer
) -> None:
    receiver.answers["/feishu"] = (200, {}, b'{"code":19021,"msg":"sign match fail"}')
    create_receiver(office.vera, receiver, kind=ReceiverKind.FEISHU)
    create_receiver(office.vera, receiver)
    seen(create_rule(office.vera), 1, at=NOON)
    assert alert_deliveries_send(at=after(1)) == 1
    refused = AlertReceiver.objects.get(kind="feishu")
    assert refused.last_error == "the receiver refused the message with 19021: sign match fail"
    delivery = AlertDelivery.objects.get(receiver=refused)
    assert (delivery.state, delivery.tries, delivery.status) == (DeliveryState.WAITING, 1, 200)


def test_only_those_who_heard_the_beginning_hear_the_end(
    office: Office, receiver: WebServer
) -> None:
    old = create_receiver(office.vera, receiver, name="old")
    rule = create_rule(office.vera)
    seen(rule, 1, at=NOON)
    create_receiver(office.vera, receiver, name="new")
    AlertRoute.objects.all().delete()
    seen(rule, at=after(5))
    ended = AlertDelivery.objects.filter(notice__kind="resolved")
    assert [delivery.receiver for delivery in ended] == [old]


def test_a_route_takes_what_is_bad_enough_and_fits(office: Office, receiver: WebServer) -> None:
    rule = create_rule(office.vera, severity="warning")
    row = create_receiver(office.vera, receiver)
    route = AlertRoute.objects.get()

    def changed(**values: Any) -> None:
        request = AlertRouteRequest(
            **{"name": "r", "severity": AlertSeverity.INFO, "receivers": [row], **values}
        )
        services.alert_route_change(route=route, request=request, actor=office.vera)

    taken = []
    cases: tuple[dict[str, Any], ...] = (
        {"severity": AlertSeverity.CRITICAL},
        {"matchers": ("cluster=east",)},
        {"matchers": ("rule=hot", "cluster=we*")},
        {"enabled": False},
    )
    for number, values in enumerate(cases):
        changed(**values)
        seen(rule, 1, at=after(10 * number))
        taken.append(AlertDelivery.objects.count())
        seen(rule, at=after(10 * number + 5))
    assert taken == [0, 0, 1, 2]


def test_a_test_is_tried_once_and_says_who_sent_it(office: Office, receiver: WebServer) -> None:
    row = create_receiver(office.vera, receiver, kind=ReceiverKind.SLACK)
    services.alert_receiver_test(receiver=row, actor=office.vera, at=NOON)
    receiver.answers["/slack"] = (404, {}, b"no_service")
    assert alert_deliveries_send(at=NOON) == 0
    (message,) = sent(receiver)
    assert "Sent by vera" in message["blocks"][1]["text"]["text"]
    assert AlertDelivery.objects.get().state == DeliveryState.GIVEN_UP
    services.alert_receiver_switch(receiver=row, actor=office.vera, active=False)
    with pytest.raises(AlertSettingsRefused, match="notifications are paused"):
        services.alert_receiver_test(receiver=row, actor=office.vera, at=NOON)


def test_an_address_is_kept_encrypted_and_sealed_anew(
    office: Office, receiver: WebServer, settings: Settings
) -> None:
    row = create_receiver(office.vera, receiver, secret="s3cret")
    assert row.url is not None
    assert b"127.0.0.1" not in bytes(row.url)
    assert decrypt(row.url).decode() == f"http://127.0.0.1:{receiver.port}/webhook"
    (old,) = settings.NINEFOLD_ENCRYPTION_KEYS[:1]
    settings.NINEFOLD_ENCRYPTION_KEYS = [Fernet.generate_key().decode(), old]
    secrets_reencrypt()
    settings.NINEFOLD_ENCRYPTION_KEYS = settings.NINEFOLD_ENCRYPTION_KEYS[:1]
    row.refresh_from_db()
    assert row.secret is not None
    assert decrypt(row.secret) == b"s3cret"


@for_each_case(
    ("changes", "field"),
    [
        ({"name": " "}, "name"),
        ({"url": ""}, "url"),
        ({"url": "http://169.254.169.254/latest"}, "url"),
        ({"kind": ReceiverKind.EMAIL}, "addresses"),
        ({"kind": ReceiverKind.EMAIL, "addresses": ("ada",)}, "addresses"),
    ],
)
def test_a_receiver_that_cannot_be_is_refused_beside_its_field(
    office: Office, changes: dict[str, Any], field: str
) -> None:
    values = {"name": "chat", "kind": ReceiverKind.SLACK, "url": "https://hooks.example.com/1"}
    with pytest.raises(AlertSettingsRefused) as refused:
        services.alert_receiver_create(
            request=AlertReceiverRequest(**{**values, **changes}), actor=office.vera
        )
    assert refused.value.field == field


def test_only_operators_say_who_is_told(office: Office, receiver: WebServer) -> None:
    row = create_receiver(office.vera, receiver)
    route = AlertRoute.objects.get()
    asked = AlertRouteRequest(name="mine", severity=AlertSeverity.INFO, receivers=[row])
    actions = (
        lambda: create_receiver(office.ada, receiver, name="mine"),
        lambda: services.alert_receiver_test(receiver=row, actor=office.ada, at=NOON),
        lambda: services.alert_receiver_switch(receiver=row, actor=office.ada, active=False),
        lambda: services.alert_receiver_delete(receiver=row, actor=office.ada),
        lambda: services.alert_route_create(request=asked, actor=office.ada),
        lambda: services.alert_route_change(route=route, request=asked, actor=office.ada),
        lambda: services.alert_route_delete(route=route, actor=office.ada),
    )
    for action in actions:
        with pytest.raises(PermissionRefused):
            action()
