"""The bell, the list, the wishes, and a team's webhooks, as their readers use them."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, Settings

from apps.notifications.models import Notification, Webhook, WebhookDelivery
from controlplane.domain.alerts.notifications import NotificationKind
from controlplane.domain.common.permissions import TeamRole
from controlplane.domain.outbound.egress import EgressPolicy
from tests import factories
from tests.functional.sample_rows import EmptyCompany
from tests.integration.monitoring.notifications import notify

HTMX = {"HX-Request": "true"}
HOOK = {"name": "chat", "url": "https://203.0.114.7/hook", "kinds": ["job.failed"]}


def fail(empty: EmptyCompany, number: int = 0, *, seconds: int = 0) -> None:
    notify(
        NotificationKind.JOB_FAILED,
        team=empty.team,
        creator=empty.user,
        at=timezone.now() + timedelta(seconds=seconds),
        subject=f"{number:032x}",
        name=f"job <{number}>",
        reason="the disk is full",
    )


@pytest.fixture
def administrator(empty: EmptyCompany) -> Client:
    client = Client()
    client.force_login(factories.user("vera", team=empty.team, role=TeamRole.ADMINISTRATOR))
    return client


def test_the_list_says_what_happened_and_why_and_an_empty_one_what_will_be_here(
    browser: Client, empty: EmptyCompany
) -> None:
    assert "No notifications" in browser.get("/notifications").text
    fail(empty)
    page = browser.get("/notifications").text
    assert "job &lt;0&gt; has failed" in page
    assert "the disk is full" in page


def test_the_list_is_narrowed_by_its_address(browser: Client, empty: EmptyCompany) -> None:
    fail(empty)
    notify(
        NotificationKind.MODEL_IMPORTED,
        team=empty.team,
        creator=empty.user,
        at=timezone.now(),
        name="qwen",
    )
    assert "qwen" not in browser.get("/notifications?kind=job.failed").text
    assert "&gt; has failed" not in browser.get("/notifications?severity=good").text
    browser.post("/notifications/read", {"all": "1"})
    assert "No matching notifications" in browser.get("/notifications?unread=on").text
    lines = browser.get("/notifications?format=csv").getvalue().decode()
    assert "job <0> has failed,the disk is full" in lines


def test_looking_at_what_it_tells_of_is_reading_it(browser: Client, empty: EmptyCompany) -> None:
    fail(empty)
    row = Notification.objects.get()
    answer = browser.get(f"/notifications/{row.uid}")
    assert answer["Location"] == f"/jobs/{0:032x}"
    row.refresh_from_db()
    assert row.read_at is not None


def test_nobody_opens_or_reads_what_another_was_told(outsider: Client, empty: EmptyCompany) -> None:
    fail(empty)
    row = Notification.objects.get()
    assert outsider.get(f"/notifications/{row.uid}").status_code == 404
    outsider.post("/notifications/read", {"uid": row.uid})
    row.refresh_from_db()
    assert row.read_at is None


def test_marking_all_as_read_can_be_undone(browser: Client, empty: EmptyCompany) -> None:
    for number in range(3):
        fail(empty, number)
    answer = browser.post("/notifications/read", {"all": "1"}, follow=True)
    assert "3 notifications marked as read." in answer.text
    read_at = answer.context["undo"]
    browser.post("/notifications/undo", {"read_at": read_at})
    assert Notification.objects.filter(read_at=None).count() == 3


@pytest.mark.parametrize("read_at", ["", "yesterday", "2026-01-01T00:00:00", "9999-99-99T00:00Z"])
def test_an_undo_of_nothing_changes_nothing(
    browser: Client, empty: EmptyCompany, read_at: str
) -> None:
    fail(empty)
    assert browser.post("/notifications/undo", {"read_at": read_at}).status_code == 302
    assert browser.get("/notifications", {"read": read_at}).status_code == 200


def test_the_bell_counts_what_is_unread_and_is_silent_while_nothing_is_new(
    browser: Client, empty: EmptyCompany
) -> None:
    first = browser.get("/notifications/bell", headers=HTMX)
    assert first.status_code == 200
    mark = first.context["mark"]
    again = browser.get("/notifications/bell", {"seen": mark}, headers=HTMX)
    assert (again.status_code, again.content) == (204, b"")
    fail(empty)
    bell = browser.get("/notifications/bell", {"seen": mark}, headers=HTMX)
    assert "1 unread" in bell.text
    assert json.loads(bell["HX-Trigger"])["toast"] == {
        "level": "error",
        "text": "job <0> has failed",
    }


def test_a_page_that_shows_the_subject_needs_no_toast(browser: Client, empty: EmptyCompany) -> None:
    mark = browser.get("/notifications/bell", headers=HTMX).context["mark"]
    fail(empty)
    here = {**HTMX, "HX-Current-URL": f"http://testserver/jobs/{0:032x}"}
    assert "HX-Trigger" not in browser.get("/notifications/bell", {"seen": mark}, headers=here)


def test_a_page_that_has_just_been_opened_repeats_no_old_news(
    browser: Client, empty: EmptyCompany
) -> None:
    fail(empty)
    assert "HX-Trigger" not in browser.get("/notifications/bell", headers=HTMX)


def test_the_bell_of_somebody_who_was_logged_out_stops_asking(client: Client, db: None) -> None:
    answer = client.get("/notifications/bell", headers=HTMX)
    assert (answer.status_code, answer.content) == (286, b"")


def test_the_bell_costs_four_queries_however_much_there_is(
    browser: Client, empty: EmptyCompany, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(12):
        fail(empty, number)
    browser.get("/notifications/bell", headers=HTMX)  # which notes in the session when it began
    with django_assert_num_queries(4):
        browser.get("/notifications/bell", headers=HTMX)


def test_wishes_are_kept_as_they_were_ticked(browser: Client, empty: EmptyCompany) -> None:
    assert "E-mail is not configured" in browser.get("/notifications/settings").text
    browser.post("/notifications/settings", {"wish": ["job.succeeded:page", "job.failed:team"]})
    fail(empty)
    assert Notification.objects.count() == 0
    notify(NotificationKind.JOB_SUCCEEDED, team=empty.team, creator=empty.user, at=timezone.now())
    assert Notification.objects.count() == 1


def test_a_test_comes_into_the_bell(browser: Client, empty: EmptyCompany) -> None:
    assert "Test notification created." in browser.post("/notifications/test", follow=True).text
    assert "Test notification, sent by ada" in browser.get("/notifications/bell", headers=HTMX).text


def test_a_webhook_is_made_its_secret_shown_once_and_never_again(
    administrator: Client, empty: EmptyCompany
) -> None:
    assert "No webhooks" in administrator.get("/teams/maps/webhooks").text
    response = administrator.post("/teams/maps/webhooks/new", HOOK)
    secret = response.context["text"]
    webhook = Webhook.objects.get()
    assert secret in response.text
    for address in ("/teams/maps/webhooks", f"/webhooks/{webhook.uid}"):
        page = administrator.get(address).text
        assert "https://203.0.114.7/hook" in page
        assert secret not in page
    rotated = administrator.post(f"/webhooks/{webhook.uid}/secret").context["text"]
    assert rotated != secret


def test_an_address_that_may_not_be_called_is_refused_beside_its_field(
    administrator: Client, empty: EmptyCompany
) -> None:
    given = {**HOOK, "url": "https://169.254.169.254/latest"}
    answer = administrator.post("/teams/maps/webhooks/new", given)
    assert answer.status_code == 422
    assert (
        "a link-local network, such as a cloud metadata service"
        in answer.context["form"].errors["url"][0]
    )
    assert Webhook.objects.count() == 0


def test_a_webhook_is_changed_paused_resumed_tested_and_deleted(
    administrator: Client, empty: EmptyCompany
) -> None:
    administrator.post("/teams/maps/webhooks/new", HOOK)
    webhook = Webhook.objects.get()
    address = f"/webhooks/{webhook.uid}"
    administrator.post(
        f"{address}/change", {"url": "https://203.0.114.8/", "kinds": ["job.failed"]}
    )
    administrator.post(f"{address}/pause")
    webhook.refresh_from_db()
    assert (webhook.url, webhook.active) == ("https://203.0.114.8/", False)
    refused = administrator.post(f"{address}/test", follow=True).text
    assert "notifications are paused; resume them before the test" in refused
    administrator.post(f"{address}/resume")
    administrator.post(f"{address}/test")
    delivery = WebhookDelivery.objects.get()
    page = administrator.get(address)
    assert "hx-trigger" in page.text.split('id="now"')[1]
    assert administrator.get(address, headers=HTMX).status_code == 200
    again = administrator.post(f"{address}/deliveries/{delivery.uid}/again", follow=True)
    assert "cannot be sent again" in again.text
    administrator.post(f"{address}/delete")
    assert Webhook.objects.count() == 0


def test_webhooks_are_for_those_who_manage_the_team(
    browser: Client, outsider: Client, administrator: Client, empty: EmptyCompany
) -> None:
    administrator.post("/teams/maps/webhooks/new", HOOK)
    uid = Webhook.objects.get().uid
    assert browser.get("/teams/maps/webhooks").status_code == 403
    assert outsider.get("/teams/maps/webhooks").status_code == 404
    for client in (browser, outsider):
        assert client.get(f"/webhooks/{uid}").status_code == 404
        assert client.post(f"/webhooks/{uid}/delete").status_code == 404


def test_an_address_can_be_allowed_by_its_network(
    administrator: Client, empty: EmptyCompany, settings: Settings
) -> None:
    settings.NINEFOLD_EGRESS = EgressPolicy.parse(allow=["10.9.0.0/16"])
    administrator.post("/teams/maps/webhooks/new", {**HOOK, "url": "https://10.9.0.4/x"})
    assert Webhook.objects.get().url == "https://10.9.0.4/x"


def test_home_tells_each_role_what_needs_it(empty: EmptyCompany, browser: Client) -> None:
    cluster = factories.cluster(cards=1)
    cluster.nodes.get().cards.update(state="isolated", state_reason="too many memory errors")
    boss = Client()
    boss.force_login(factories.user("root", admin=True))
    assert "too many memory errors" in boss.get("/").text
    assert "too many memory errors" not in browser.get("/").text
    assert "too many memory errors" in browser.get("/fleet").text
