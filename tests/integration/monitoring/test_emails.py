"""E-mail leaves by a real mail server: in its reader's language, later if it must, never as a flood."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone
from pytest_django import Settings

from apps.notifications.models import Mail
from apps.notifications.reconcilers import emails_send
from apps.notifications.selectors.notifications import email_error
from controlplane.domain.alerts.deliveries import PAUSES, DeliveryState
from controlplane.domain.alerts.notifications import (
    BURST,
    COLLAPSED_WITHIN,
    MAILS_IN_A_BURST,
    NotificationKind,
)
from tests.integration.monitoring.conftest import Office, Postbox
from tests.integration.monitoring.notifications import notify

FAILED = NotificationKind.JOB_FAILED
NOW = timezone.now().replace(microsecond=0)


def fail(office: Office, number: int = 0, *, after: timedelta = timedelta()) -> None:
    notify(
        FAILED,
        team=office.team,
        creator=office.ada,
        at=NOW + after,
        subject=f"{number:032x}",
        name=f"job {number}",
        reason="ended with exit code 28: the disk is full",
    )


def test_a_failed_job_arrives_in_text_and_in_html(office: Office, postbox: Postbox) -> None:
    fail(office)
    assert emails_send(at=NOW) == 1
    assert emails_send(at=NOW) == 0
    (message,) = postbox.messages
    assert message["To"] == "ada@example.com"
    assert message["From"] == "ninefold@example.com"
    assert message["Subject"] == "[Ninefold] job 0 has failed"
    assert message["Auto-Submitted"] == "auto-generated"
    assert message["Message-ID"].endswith("@example.com>")
    (text,) = postbox.texts()
    assert "ended with exit code 28: the disk is full" in text
    assert f"https://ninefold.example.com/jobs/{0:032x}" in text
    html = message.get_body(("html",))
    assert html is not None
    assert f'href="https://ninefold.example.com/jobs/{0:032x}"' in html.get_content()
    assert Mail.objects.get().state == DeliveryState.ARRIVED


def test_it_is_written_in_the_language_and_zone_of_its_reader(
    office: Office, postbox: Postbox
) -> None:
    office.ada.language, office.ada.time_zone = "zh-hans", "Asia/Shanghai"
    office.ada.save()
    fail(office)
    emails_send(at=NOW)
    assert postbox.messages[0]["Subject"] == "[Ninefold] job 0 失败了"
    assert f"{NOW + timedelta(hours=8):%Y-%m-%d %H:%M} CST" in postbox.texts()[0]


def test_without_a_mail_server_nothing_waits_for_one(office: Office, settings: Settings) -> None:
    assert settings.NINEFOLD_EMAIL_FROM == ""
    fail(office)
    assert Mail.objects.count() == 0
    assert emails_send(at=NOW) == 0


def test_a_burst_becomes_one_message(office: Office, postbox: Postbox) -> None:
    for number in range(MAILS_IN_A_BURST + 3):
        fail(office, number)
    assert emails_send(at=NOW) == 1
    assert postbox.messages[0]["Subject"] == "[Ninefold] 8 notifications"
    assert all(f"job {number} has failed" in postbox.texts()[0] for number in range(8))


def test_what_comes_after_a_burst_waits_for_the_window_and_leaves_together(
    office: Office, postbox: Postbox
) -> None:
    for number in range(MAILS_IN_A_BURST):
        fail(office, number)
    assert emails_send(at=NOW) == MAILS_IN_A_BURST
    minute = timedelta(minutes=1)
    for number in range(10, 13):
        fail(office, number, after=minute)
    assert emails_send(at=NOW + minute) == 0
    assert emails_send(at=NOW + BURST - minute) == 0
    assert emails_send(at=NOW + BURST) == 3
    assert len(postbox.messages) == MAILS_IN_A_BURST + 3


def test_a_deployment_that_flaps_is_mailed_at_once_and_once_more_at_the_end(
    office: Office, postbox: Postbox
) -> None:
    for turn in range(10):
        kind = (
            NotificationKind.DEPLOYMENT_DEGRADED
            if turn % 2 == 0
            else NotificationKind.DEPLOYMENT_RECOVERED
        )
        at = NOW + timedelta(seconds=30 * turn)
        notify(kind, team=office.team, creator=office.ada, at=at, name="parcels")
        emails_send(at=at)
    to_ada = [one for one in postbox.messages if one["To"] == "ada@example.com"]
    assert [one["Subject"] for one in to_ada] == ["[Ninefold] parcels is degraded"]
    emails_send(at=NOW + COLLAPSED_WITHIN)
    to_ada = [one for one in postbox.messages if one["To"] == "ada@example.com"]
    assert [one["Subject"] for one in to_ada][1:] == ["[Ninefold] parcels has recovered"]
    assert "(10 times)" in postbox.texts()[-1]


def test_a_mail_server_that_is_down_costs_time_only(
    office: Office, postbox: Postbox, settings: Settings
) -> None:
    fail(office)
    port, settings.EMAIL_PORT = settings.EMAIL_PORT, 9
    assert emails_send(at=NOW) == 0
    mail = Mail.objects.get()
    assert (mail.state, mail.tries) == (DeliveryState.WAITING, 1)
    assert mail.error.startswith("the mail server cannot be reached")
    assert email_error(office.ada) == mail
    settings.EMAIL_PORT = port
    assert emails_send(at=NOW) == 0, "its time has not come"
    assert emails_send(at=NOW + 2 * PAUSES[0]) == 1
    assert email_error(office.ada) is None


def test_what_is_on_hold_loses_no_try_while_the_mail_server_is_down(
    office: Office, postbox: Postbox, settings: Settings
) -> None:
    for number in range(MAILS_IN_A_BURST):
        fail(office, number)
    emails_send(at=NOW)
    minute = timedelta(minutes=1)
    fail(office, 10, after=minute)
    notify(
        NotificationKind.DEPLOYMENT_DEGRADED, team=office.team, creator=office.bob, at=NOW + minute
    )
    settings.EMAIL_PORT = 9
    assert emails_send(at=NOW + minute) == 0
    waiting = Mail.objects.filter(state=DeliveryState.WAITING)
    assert {(mail.recipient.username, mail.tries) for mail in waiting} == {
        ("ada", 0),
        ("bob", 1),
        ("vera", 1),
    }
    assert {mail.next_try_at for mail in waiting.filter(recipient=office.ada)} == {NOW + BURST}


def test_a_refused_message_is_counted_once_when_the_server_goes_silent_after_it(
    office: Office, postbox: Postbox
) -> None:
    postbox.refuse["ada@example.com"] = "450 mailbox busy"
    postbox.hangs = True
    notify(NotificationKind.DEPLOYMENT_DEGRADED, team=office.team, creator=office.ada, at=NOW)
    assert emails_send(at=NOW) == 0
    assert [(mail.tries, mail.error[:30]) for mail in Mail.objects.order_by("id")] == [
        (1, "the mail server refused the ad"),
        (1, "the mail server answered 421 c"),
        (1, "the mail server answered 421 c"),
    ]


def test_a_mail_is_given_up_in_the_end_and_its_reader_can_see_why(
    office: Office, postbox: Postbox
) -> None:
    postbox.refuse["DATA"] = "451 try again later"
    fail(office)
    at = NOW
    for _ in range(len(PAUSES) + 1):
        emails_send(at=at)
        at += timedelta(hours=10)
    mail = Mail.objects.get()
    assert mail.state == DeliveryState.GIVEN_UP
    assert mail.error == "the mail server refused the message: 451 try again later"
    assert email_error(office.ada) == mail


def test_an_address_that_is_refused_holds_up_nobody_else(office: Office, postbox: Postbox) -> None:
    postbox.refuse["ada@example.com"] = "550 no such mailbox"
    notify(NotificationKind.DEPLOYMENT_DEGRADED, team=office.team, creator=office.ada, at=NOW)
    assert emails_send(at=NOW) == 2
    assert {one["To"] for one in postbox.messages} == {"bob@example.com", "vera@example.com"}
    mail = Mail.objects.get(recipient=office.ada)
    assert mail.state == DeliveryState.GIVEN_UP
    assert "550 no such mailbox" in mail.error


def test_an_address_that_is_none_holds_up_nobody_else(office: Office, postbox: Postbox) -> None:
    address = "ada@example.com\nBcc: eve@example.com"
    notify(NotificationKind.DEPLOYMENT_DEGRADED, team=office.team, creator=office.ada, at=NOW)
    type(office.ada).objects.filter(pk=office.ada.pk).update(email=address)
    assert emails_send(at=NOW) == 2
    assert {one["To"] for one in postbox.messages} == {"bob@example.com", "vera@example.com"}
    mail = Mail.objects.get(recipient=office.ada)
    assert mail.state == DeliveryState.GIVEN_UP
    assert "cannot be sent" in mail.error


@pytest.mark.parametrize("change", [{"is_active": False}, {"email": ""}])
def test_nothing_is_sent_to_who_is_gone_by_then(
    office: Office, postbox: Postbox, change: dict[str, object]
) -> None:
    fail(office)
    for name, value in change.items():
        setattr(office.ada, name, value)
    office.ada.save()
    assert emails_send(at=NOW) == 0
    assert Mail.objects.get().state == DeliveryState.GIVEN_UP
    assert postbox.messages == []


def test_a_name_cannot_add_headers(office: Office, postbox: Postbox) -> None:
    name = "x\r\nBcc: eve@example.com"
    notify(FAILED, team=office.team, creator=office.ada, at=NOW, name=name)
    assert emails_send(at=NOW) == 1
    assert postbox.messages[0]["Bcc"] is None
    assert postbox.messages[0]["Subject"] == "[Ninefold] x Bcc: eve@example.com has failed"
