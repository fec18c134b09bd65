"""Notifications and webhooks over REST."""

from __future__ import annotations

from django.utils import timezone
from rest_framework.test import APIClient

from apps.accounts.services import membership_set
from apps.notifications.models import Webhook, WebhookDelivery
from apps.notifications.services.notifications import notification_send_test
from controlplane.domain.common.permissions import Scope, TeamRole
from tests.functional.api.callers import API, caller, problem
from tests.integration.company import Company

HOOK = {"name": "chat", "url": "https://203.0.114.7/hook", "kinds": ["job.failed"]}


def administrator(company: Company) -> APIClient:
    roles = frozenset({TeamRole.ENGINEER, TeamRole.ADMINISTRATOR})
    membership_set(team=company.team, user=company.engineer, roles=roles, actor=None)
    return caller(company.engineer)


def test_one_reads_what_one_was_told_and_marks_it(engineer: APIClient, company: Company) -> None:
    for _ in range(2):
        notification_send_test(user=company.engineer, at=timezone.now())
    (first, second) = engineer.get(f"{API}/notifications").json()["results"]
    assert (first["kind"], first["severity"], first["read_at"]) == ("test", "info", None)
    assert first["title"] == f"Test notification, sent by {company.engineer.username}"
    read = engineer.post(f"{API}/notifications/{first['uid']}/read").json()
    assert read["read_at"] is not None
    unread = engineer.get(f"{API}/notifications?unread=true").json()["results"]
    assert [one["uid"] for one in unread] == [second["uid"]]
    assert engineer.post(f"{API}/notifications/read-all").json() == {"marked": 1}
    assert engineer.get(f"{API}/notifications?kind=job.failed").json()["results"] == []


def test_a_confined_token_sees_and_marks_only_what_its_team_was_told(company: Company) -> None:
    notification_send_test(user=company.engineer, at=timezone.now())
    confined = caller(company.engineer, Scope.ALL, team=company.team)
    assert confined.get(f"{API}/notifications").json()["results"] == []
    assert confined.post(f"{API}/notifications/read-all").json() == {"marked": 0}
    assert caller(company.engineer).post(f"{API}/notifications/read-all").json() == {"marked": 1}


def test_nobody_sees_what_another_was_told(stranger: APIClient, company: Company) -> None:
    notification_send_test(user=company.engineer, at=timezone.now())
    assert stranger.get(f"{API}/notifications").json()["results"] == []
    uid = company.engineer.notifications.get().uid
    problem(stranger.post(f"{API}/notifications/{uid}/read"), 404, "not-found")


def test_a_webhook_lives_its_life(company: Company) -> None:
    client = administrator(company)
    created = client.post(f"{API}/webhooks", HOOK)
    assert created.status_code == 201
    uid, secret = created.json()["uid"], created.json()["secret"]
    assert secret not in client.get(f"{API}/webhooks").content.decode()
    changed = client.patch(f"{API}/webhooks/{uid}", {"active": False}).json()
    assert (changed["active"], changed["kinds"]) == (False, ["job.failed"])
    body = problem(client.post(f"{API}/webhooks/{uid}/test"), 422, "webhook-refused")
    assert body["errors"][0]["field"] == "active"
    client.patch(f"{API}/webhooks/{uid}", {"active": True, "kinds": ["model.imported"]})
    test = client.post(f"{API}/webhooks/{uid}/test")
    assert (test.status_code, test.json()["state"], test.json()["tries"]) == (202, "waiting", [])
    delivery = WebhookDelivery.objects.get()
    listed = client.get(f"{API}/deliveries?webhook={uid}").json()["results"]
    assert [one["uid"] for one in listed] == [delivery.uid]
    problem(client.post(f"{API}/deliveries/{delivery.uid}/again"), 409, "illegal-transition")
    assert client.post(f"{API}/webhooks/{uid}/rotate").json()["secret"] != secret
    assert client.delete(f"{API}/webhooks/{uid}").status_code == 204
    assert Webhook.objects.count() == 0


def test_an_address_inside_is_refused_with_its_field(company: Company) -> None:
    given = {**HOOK, "url": "https://127.0.0.1/"}
    body = problem(administrator(company).post(f"{API}/webhooks", given), 422, "webhook-refused")
    assert body["errors"][0]["field"] == "url"
    assert "loopback" in body["detail"]


def test_webhooks_are_for_those_who_manage_the_team(
    engineer: APIClient, stranger: APIClient, company: Company
) -> None:
    problem(engineer.post(f"{API}/webhooks", HOOK), 403, "permission-refused")
    created = administrator(company).post(f"{API}/webhooks", HOOK)
    assert stranger.get(f"{API}/webhooks").json()["results"] == []
    problem(stranger.delete(f"{API}/webhooks/{created.json()['uid']}"), 404, "not-found")
    narrow = caller(company.engineer, Scope.JOBS)
    assert narrow.get(f"{API}/webhooks").status_code == 200
    assert narrow.post(f"{API}/webhooks", HOOK).status_code == 403
