"""Sign-in of the command line by a code: what a user, another user and an attacker can do with the codes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import httpx
import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.utils import timezone
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from apps.accounts.models import AuditEntry, DeviceAuthorization, PersonalToken, User
from apps.accounts.services.device_authorizations import device_authorization_decide
from apps.accounts.web.device_authorization import GRANT_TYPE
from ninefold_client.device_login import await_device_token, request_device_code
from ninefold_client.errors import NinefoldError
from tests import factories


@pytest.fixture(autouse=True)
def no_counted_requests() -> None:
    """Requests are counted in the process, which all tests share."""
    cache.clear()


@pytest.fixture
def mei(db: None) -> User:
    return factories.user("mei")


def browser(user: User, **options: Any) -> Client:
    client = Client(**options)
    client.force_login(user)
    return client


def request_code(**fields: str) -> dict[str, Any]:
    fields = {"client_id": "ninefold-cli", "scope": "read jobs", "host": "mei-laptop"} | fields
    answer: dict[str, Any] = Client().post("/oauth/device_authorization", fields).json()
    return answer


def poll(code: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    body = {
        "grant_type": GRANT_TYPE,
        "client_id": "ninefold-cli",
        "device_code": code["device_code"],
    }
    response = Client().post("/oauth/token", body)
    return response.status_code, response.json()


def decide(client: Client, code: dict[str, Any], decision: str = "approve") -> Any:
    return client.post("/device", {"user_code": code["user_code"].lower(), "decision": decision})


def test_an_approved_code_becomes_one_token_with_the_scopes_that_the_page_shows(mei: User) -> None:
    code = request_code()
    assert poll(code) == (
        400,
        {
            "error": "authorization_pending",
            "error_description": "nobody has approved the code yet",
            "interval": code["interval"],
        },
    )
    page = browser(mei).get("/device", {"user_code": code["user_code"]})
    assert (page.status_code, page["Cache-Control"].count("no-store")) == (200, 1)
    for text in (code["user_code"], "mei-laptop", "127.0.0.1", "jobs"):
        assert text in page.text
    assert decide(browser(mei), code).status_code == 200

    status, answer = poll(code)
    assert (status, answer["token_type"], answer["scope"]) == (200, "Bearer", "jobs read")
    token = PersonalToken.objects.get()
    assert (token.user, token.name, token.scopes) == (
        mei,
        "ninefold on mei-laptop",
        ["jobs", "read"],
    )
    assert token.expires_at is not None
    assert (
        Client(headers={"Authorization": f"Bearer {answer['access_token']}"})
        .get("/api/v1/me")
        .json()["username"]
        == "mei"
    )
    # A replay finds nothing, and neither is the page of use any more.
    assert poll(code)[1]["error"] == "invalid_grant"
    assert decide(browser(mei), code).status_code == 404
    assert PersonalToken.objects.count() == 1
    actions = set(AuditEntry.objects.values_list("action", "actor_name"))
    assert {("device_authorization.approve", "mei"), ("token.create", "mei")} <= actions


def test_a_denied_code_gives_no_token(mei: User) -> None:
    code = request_code()
    assert decide(browser(mei), code, "deny").status_code == 200
    assert poll(code)[1]["error"] == "access_denied"
    assert decide(browser(mei), code).status_code == 404
    assert AuditEntry.objects.filter(action="device_authorization.deny").exists()
    assert not PersonalToken.objects.exists()


def test_an_expired_code_gives_no_token_and_cannot_be_approved(mei: User) -> None:
    pending, approved = request_code(), request_code()
    decide(browser(mei), approved)
    DeviceAuthorization.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert decide(browser(mei), pending).status_code == 404
    assert poll(pending)[1]["error"] == poll(approved)[1]["error"] == "expired_token"
    assert not PersonalToken.objects.exists()


def test_a_program_that_asks_too_fast_is_slowed_down(mei: User) -> None:
    code = request_code()
    assert poll(code)[1]["error"] == "authorization_pending"
    assert poll(code)[1] == {
        "error": "slow_down",
        "error_description": "requests come faster than the interval; it is longer now",
        "interval": 10,
    }
    DeviceAuthorization.objects.update(polled_at=timezone.now() - timedelta(seconds=10))
    assert poll(code)[1]["error"] == "authorization_pending"


def test_the_first_user_who_decides_owns_the_code(mei: User) -> None:
    otto, code = factories.user("otto"), request_code()
    decide(browser(mei), code)
    assert decide(browser(otto), code).status_code == 404
    assert decide(browser(otto), code, "deny").status_code == 404
    assert poll(code)[0] == 200
    assert PersonalToken.objects.get().user == mei


def test_no_token_for_a_user_who_was_deactivated_meanwhile(mei: User) -> None:
    code = request_code()
    decide(browser(mei), code)
    User.objects.filter(pk=mei.pk).update(is_active=False)
    assert poll(code)[1]["error"] == "access_denied"


def test_another_site_cannot_approve_and_a_stranger_has_to_sign_in(mei: User) -> None:
    code = request_code()
    assert decide(browser(mei, enforce_csrf_checks=True), code).status_code == 403
    # A link that is opened decides nothing.
    browser(mei).get("/device", {"user_code": code["user_code"], "decision": "approve"})
    assert decide(Client(), code).status_code == 302
    assert poll(code)[1]["error"] == "authorization_pending"


def test_codes_cannot_be_guessed_or_requested_without_end(mei: User) -> None:
    client, code = browser(mei), request_code()
    statuses = [client.get("/device", {"user_code": f"BCDF-{n:04}"}).status_code for n in range(31)]
    assert statuses == [404] * 30 + [429]
    assert decide(client, code).status_code == 429
    wrong = {"device_code": "wrong"}
    assert [poll(wrong)[0] for _ in range(31)] == [400] * 30 + [429]
    requested = [request_code() for _ in range(20)]
    assert requested[-1]["error"] == "slow_down"
    assert request_code(client_id="other")["error"] == "slow_down"


def test_invalid_requests_are_refused_as_the_rfc_says(db: None) -> None:
    assert request_code(client_id="other")["error"] == "invalid_client"
    assert request_code(scope="read everything")["error"] == "invalid_scope"
    assert Client().post("/oauth/token", {"grant_type": "password"}).json()["error"] == (
        "unsupported_grant_type"
    )
    assert Client().get("/oauth/token").status_code == 405
    script = request_code(host="<script>alert(1)</script>")
    assert DeviceAuthorization.objects.get(user_code=script["user_code"].replace("-", "")).host == (
        "scriptalert1script"
    )


def test_a_token_lives_no_longer_than_the_setting_allows(mei: User, settings: Settings) -> None:
    settings.NINEFOLD_TOKEN_MAX_DAYS = 7
    names = []
    for _ in range(2):
        code = request_code()
        decide(browser(mei), code)
        assert poll(code)[1]["expires_in"] <= 7 * 86400
        names.append(PersonalToken.objects.order_by("-id")[0].name)
    assert names == ["ninefold on mei-laptop", "ninefold on mei-laptop (2)"]


def test_the_client_waits_until_the_code_is_approved(
    transactional_db: None, live_server: LiveServer
) -> None:
    mei = factories.user("mei")
    code = request_device_code(live_server.url, scopes=["read"])
    intervals: list[float] = []

    def approve_at_third_poll(seconds: float) -> None:
        intervals.append(seconds)
        DeviceAuthorization.objects.update(polled_at=None)
        if len(intervals) == 3:
            device_authorization_decide(
                user_code=code.user_code, approved=True, user=mei, at=timezone.now()
            )

    token = await_device_token(live_server.url, code, sleep=approve_at_third_poll)
    assert (token[:4], len(intervals)) == ("nfp-", 3)

    denied = request_device_code(live_server.url, scopes=["read"])

    def deny(_seconds: float) -> None:
        device_authorization_decide(
            user_code=denied.user_code, approved=False, user=mei, at=timezone.now()
        )

    with pytest.raises(NinefoldError, match="was denied"):
        await_device_token(live_server.url, denied, sleep=deny)


def test_of_two_simultaneous_requests_one_gets_the_token(
    transactional_db: None, live_server: LiveServer
) -> None:
    mei = factories.user("mei")
    code = request_device_code(live_server.url, scopes=["read"])
    device_authorization_decide(
        user_code=code.user_code, approved=True, user=mei, at=timezone.now()
    )
    body = {"grant_type": GRANT_TYPE, "device_code": code.device_code}
    statuses: list[int] = []

    def redeem() -> None:
        statuses.append(
            httpx.post(f"{live_server.url}/oauth/token", data=body, timeout=120).status_code
        )

    threads: list[threading.Thread] = [threading.Thread(target=redeem) for _ in range(3)]
    run: list[Callable[[], None]] = [one.start for one in threads] + [one.join for one in threads]
    for step in run:
        step()
    connection.close()
    assert sorted(statuses) == [200, 400, 400]
    assert PersonalToken.objects.count() == 1
