"""Everybody: coming in, staying out, being locked out."""

from __future__ import annotations

import re
import socket
from datetime import timedelta
from ipaddress import ip_network

import pytest
from django.core import mail
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from apps.accounts.models import AuditEntry, User
from apps.accounts.services import user_sign_in
from controlplane.domain.accounts.single_sign_on import SsoIdentity, SsoProvider
from controlplane.domain.common.permissions import TeamRole
from tests.functional.accounts.conftest import Staffed, browser
from tests.functional.api.callers import API, caller, problem

ADDRESSES = ("/people", "/people/new", "/people/{uid}")
ACTIONS = ("invite", "activate", "deactivate", "unlock", "promote")


def test_the_page_of_people_is_for_administrators_of_the_company(staffed: Staffed) -> None:
    lead, root = browser(staffed.lead), browser(staffed.root)
    for address in ADDRESSES:
        path = address.format(uid=staffed.other.uid)
        assert lead.get(path).status_code == 403
        assert root.get(path).status_code == 200
    for action in ACTIONS:
        assert lead.post(f"/people/{staffed.other.uid}/{action}").status_code == 403
    assert User.objects.get(pk=staffed.other.pk).is_active


def test_people_are_found_by_name_team_and_state(staffed: Staffed) -> None:
    User.objects.filter(username="a-viewer").update(is_active=False)
    root = browser(staffed.root)

    def found(**query: str) -> set[str]:
        rows = root.get("/people", query).context["rows"]
        return {one["person"].username for one in rows}

    assert found(text="other") == {"other"}
    assert found(team="search") == {"other"}
    assert found(state="inactive") == {"a-viewer"}
    assert found(state="admin") == {"root"}
    assert "a-viewer" in root.get("/people", {"format": "csv"}).getvalue().decode()


def test_somebody_is_invited_by_a_link_that_works_once(staffed: Staffed) -> None:
    form = {"username": "nova", "email": "", "team": staffed.maps.uid, "roles": ["engineer"]}
    response = browser(staffed.root).post("/people/new", form)
    nova = User.objects.get(username="nova")
    assert not nova.has_usable_password()
    assert list(nova.memberships.values_list("team__slug", "role")) == [("maps", "engineer")]
    link = re.search(r"http://testserver(/password/set/[^<\s]+)", response.text)
    assert link is not None
    assert link[1] not in browser(staffed.root).get(f"/people/{nova.uid}").text

    invited = Client()
    form_page = invited.get(link[1], follow=True)
    address = form_page.redirect_chain[-1][0]
    passwords = {"new_password1": "a longer sentence 7", "new_password2": "a longer sentence 7"}
    assert invited.post(address, passwords)["Location"] == "/login"
    login = {"username": "nova", "password": "a longer sentence 7"}
    assert invited.post("/login", login)["Location"] == "/"
    assert "Link expired" in Client().get(link[1]).text
    actions = AuditEntry.objects.filter(object_uid=nova.uid).values_list("action", flat=True)
    assert {"user.create", "user.invite", "password.set", "session.begin"} <= set(actions)


def test_where_mail_is_configured_the_link_is_sent_as_well(
    staffed: Staffed, settings: Settings
) -> None:
    settings.NINEFOLD_EMAIL_FROM = "ninefold@acme.example"
    form = {"username": "nova", "email": "nova@acme.example", "team": "", "roles": []}
    browser(staffed.root).post("/people/new", form)
    assert [(one.to, one.from_email) for one in mail.outbox] == [
        (["nova@acme.example"], "ninefold@acme.example")
    ]
    assert "http://testserver/password/set/" in mail.outbox[0].body


@pytest.mark.parametrize(
    ("chosen", "subject"), [("", "Your account at Ninefold"), ("zh-hans", "你的 Ninefold 账号")]
)
def test_an_invitation_is_in_the_language_of_whom_it_is_for(
    staffed: Staffed, settings: Settings, chosen: str, subject: str
) -> None:
    settings.NINEFOLD_EMAIL_FROM = "ninefold@acme.example"
    User.objects.filter(pk=staffed.other.pk).update(email="o@acme.example", language=chosen)
    User.objects.filter(pk=staffed.root.pk).update(language="en" if chosen else "zh-hans")
    page = browser(staffed.root).post(f"/people/{staffed.other.uid}/invite")
    assert mail.outbox[0].subject == subject
    assert ("was created for you at Ninefold" in mail.outbox[0].body) is not bool(chosen)
    # The page stays in the inviter's.
    assert f'lang="{"en" if chosen else "zh-hans"}"' in page.text


def test_a_name_or_an_address_is_given_once(staffed: Staffed) -> None:
    User.objects.filter(username="other").update(email="other@acme.example")
    root = browser(staffed.root)
    name = root.post("/people/new", {"username": "OTHER", "email": ""})
    assert "a user named OTHER already exists" in name.text
    mailed = root.post("/people/new", {"username": "fresh", "email": "Other@acme.example"})
    assert "a user with the e-mail" in mailed.text
    assert not User.objects.filter(username="fresh").exists()


def test_deactivation_ends_sessions_and_tokens_at_once(staffed: Staffed) -> None:
    theirs, program = browser(staffed.engineer), caller(staffed.engineer)
    root = browser(staffed.root)
    root.post(f"/people/{staffed.engineer.uid}/deactivate")
    assert theirs.get("/").status_code == 302
    problem(program.get(f"{API}/me"), 401, "authentication-failed")
    login = {"username": "a-engineer", "password": "open sesame"}
    assert Client().post("/login", login).status_code == 200

    root.post(f"/people/{staffed.engineer.uid}/activate")
    # What was open before does not come back by itself.
    assert theirs.get("/").status_code == 302
    assert Client().post("/login", login).status_code == 302


def test_the_last_company_administrator_is_kept(staffed: Staffed) -> None:
    root = browser(staffed.root)
    for action in ("deactivate", "promote"):
        refused = root.post(f"/people/{staffed.root.uid}/{action}", follow=True)
        assert "is the last administrator of the company" in refused.text
    root.post(f"/people/{staffed.other.uid}/promote", {"to": "administrator"})
    promoted = User.objects.get(username="other")
    assert (promoted.is_superuser, promoted.is_staff) == (True, True)
    browser(promoted).post(f"/people/{staffed.root.uid}/promote")
    assert not User.objects.get(username="root").is_superuser


def fail(client: Client, times: int, name: str = "a-engineer") -> list[int]:
    form = {"username": name, "password": "wrong"}
    return [client.post("/login", form).status_code for _ in range(times)]


def test_after_five_failures_the_right_password_does_not_help_for_a_while(
    staffed: Staffed, settings: Settings
) -> None:
    client = Client()
    assert fail(client, 5) == [200] * 4 + [429]
    right = {"username": "a-engineer", "password": "open sesame"}
    locked = client.post("/login", right)
    assert locked.status_code == 429
    assert "Try again" in locked.text
    assert "ask an administrator of the company" in locked.text
    assert 850 < int(locked["Retry-After"]) <= 900
    # Others at that address, and the same person elsewhere, are not concerned.
    assert client.post("/login", {**right, "username": "a-viewer"}).status_code == 302
    elsewhere = Client(REMOTE_ADDR="198.51.100.7")
    assert elsewhere.post("/login", right).status_code == 302
    settings.AXES_COOLOFF_TIME = timedelta(0)
    assert client.post("/login", right).status_code == 302


def test_an_administrator_opens_a_closed_log_in(staffed: Staffed) -> None:
    client = Client()
    fail(client, 5)
    root = browser(staffed.root)
    assert (
        "locked after failed sign-in attempts" in root.get(f"/people/{staffed.engineer.uid}").text
    )
    root.post(f"/people/{staffed.engineer.uid}/unlock")
    right = {"username": "a-engineer", "password": "open sesame"}
    assert client.post("/login", right).status_code == 302


@pytest.mark.parametrize(
    ("trusted", "forwarded", "address"),
    [
        ((), "203.0.113.9", "127.0.0.1"),
        (("127.0.0.0/8",), "203.0.113.9", "203.0.113.9"),
        # What the client wrote itself stands first and counts for nothing.
        (("127.0.0.0/8",), "1.1.1.1, 203.0.113.9", "203.0.113.9"),
        (("127.0.0.0/8", "10.0.0.0/8"), "203.0.113.9, 10.1.2.3", "203.0.113.9"),
        (("127.0.0.0/8",), "nonsense", "127.0.0.1"),
    ],
)
def test_the_address_is_the_nearest_that_is_no_proxy_of_ours(
    staffed: Staffed,
    settings: Settings,
    trusted: tuple[str, ...],
    forwarded: str,
    address: str,
) -> None:
    settings.NINEFOLD_TRUSTED_PROXIES = tuple(ip_network(one) for one in trusted)
    form = {"username": "a-engineer", "password": "open sesame"}
    Client(headers={"X-Forwarded-For": forwarded}).post("/login", form)
    assert AuditEntry.objects.get(action="session.begin").remote_address == address


def test_failed_log_ins_are_recorded_but_a_flood_of_them_is_not(staffed: Staffed) -> None:
    client = Client()
    for number in range(30):
        fail(client, 1, name=f"guess-{number}")
    entries = AuditEntry.objects.filter(action="session.refuse")
    assert entries.count() == 10
    # It may have been a password.
    assert set(entries.values_list("object_name", flat=True)) == {""}


def test_a_session_ends_when_it_is_old_or_idle(staffed: Staffed, settings: Settings) -> None:
    for key, age in (
        ("began_at", timedelta(seconds=settings.SESSION_COOKIE_AGE)),
        ("active_at", settings.NINEFOLD_SESSION_IDLE),
    ):
        client = browser(staffed.engineer)
        assert client.get("/").status_code == 200
        session = client.session
        session[key] = (timezone.now() - age - timedelta(minutes=1)).timestamp()
        session.save()
        assert client.get("/")["Location"] == "/login?next=/"


def test_polling_does_not_extend_a_session(staffed: Staffed) -> None:
    client = browser(staffed.engineer)
    client.get("/")
    earlier = (timezone.now() - timedelta(hours=6)).timestamp()
    session = client.session
    session["active_at"] = earlier
    session.save()
    client.get("/jobs", headers={"HX-Request": "true"})
    assert client.session["active_at"] == earlier
    client.get("/jobs")
    assert client.session["active_at"] > earlier


def test_a_new_password_and_logging_out_everywhere_end_other_sessions(staffed: Staffed) -> None:
    here, there = browser(staffed.engineer), browser(staffed.engineer)
    here.post("/profile/sessions/end")
    assert there.get("/").status_code == 302
    assert here.get("/").status_code == 200
    there = Client()
    there.post("/login", {"username": "a-engineer", "password": "open sesame"})
    key = here.session.session_key
    password = "a longer sentence 7"
    form = {"old_password": "open sesame", "new_password1": password, "new_password2": password}
    here.post("/profile/password", form)
    assert there.get("/").status_code == 302
    assert here.get("/").status_code == 200
    assert here.session.session_key != key


def test_profile_settings_are_saved_and_applied(staffed: Staffed) -> None:
    client = browser(staffed.engineer)
    form = {
        "first_name": "Ada",
        "last_name": "",
        "language": "zh-hans",
        "time_zone": "Asia/Shanghai",
    }
    page = client.post("/profile/details", form, follow=True)
    assert '<html lang="zh-hans"' in page.text
    assert "CST" in client.get("/teams").text
    client.post("/i18n/setlang/", {"language": "en", "next": "/profile"})
    assert '<html lang="en"' in client.get("/profile").text
    wrong = client.post("/profile/details", {**form, "time_zone": "Mars/Olympus"})
    assert "Mars/Olympus" in wrong.text
    client.post("/profile/details", {**form, "email": "eve@acme.example"})
    assert User.objects.get(username="a-engineer").email == ""


def test_a_reset_is_offered_only_where_mail_is_configured(
    staffed: Staffed, settings: Settings
) -> None:
    User.objects.filter(username="a-engineer").update(email="ada@acme.example")
    assert Client().get("/password/reset").status_code == 404
    settings.NINEFOLD_EMAIL_FROM = "ninefold@acme.example"
    assert "/password/reset" in Client().get("/login").text
    for address in ("ada@acme.example", "nobody@acme.example"):
        sent = Client().post("/password/reset", {"email": address}, follow=True)
        assert "If an account with this e-mail" in sent.text
    assert [one.to for one in mail.outbox] == [["ada@acme.example"]]


@pytest.mark.parametrize("role", [TeamRole.VIEWER, TeamRole.ENGINEER])
def test_the_admin_says_who_it_is_for(staffed: Staffed, role: TeamRole) -> None:
    refused = browser(staffed.of[role]).get("/admin/", follow=True)
    assert refused.status_code == 403
    assert Client().get("/admin/", follow=True).redirect_chain[-1][0].startswith("/login?next=")


def test_an_undelivered_invitation_is_not_reported_as_sent(
    staffed: Staffed, settings: Settings
) -> None:
    User.objects.filter(pk=staffed.other.pk).update(email="other@acme.example")
    settings.NINEFOLD_EMAIL_FROM = "ninefold@acme.example"
    root, address = browser(staffed.root), f"/people/{staffed.other.uid}/invite"
    assert "The link was sent by e-mail." in root.post(address).text
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    with socket.socket() as unserved:
        unserved.bind(("127.0.0.1", 0))
        settings.EMAIL_HOST, settings.EMAIL_PORT = unserved.getsockname()
        page = root.post(address).text
    assert "Give the person this link" in page
    assert "/password/set/" in page


def test_links_for_passwords_lead_to_https_where_the_product_is_behind_it(
    staffed: Staffed, settings: Settings
) -> None:
    User.objects.filter(pk=staffed.other.pk).update(email="other@acme.example")
    settings.NINEFOLD_EMAIL_FROM = "ninefold@acme.example"
    root = browser(staffed.root)
    settings.SESSION_COOKIE_SECURE = True
    # As a proxy that ends TLS hands it on: in plain HTTP.
    invited = root.post(f"/people/{staffed.other.uid}/invite")
    assert "https://testserver/password/set/" in invited.text
    mail.outbox.clear()
    Client().post("/password/reset", {"email": "other@acme.example"})
    (letter,) = mail.outbox
    assert "https://testserver/password/set/" in letter.body


def test_an_account_gets_a_few_resets_an_hour_whoever_asks(
    staffed: Staffed, settings: Settings
) -> None:
    User.objects.filter(username="other").update(email="other@acme.example")
    User.objects.filter(username="root").update(email="root@acme.example")
    settings.NINEFOLD_EMAIL_FROM = "ninefold@acme.example"
    for _ in range(5):
        asked = Client().post("/password/reset", {"email": "other@acme.example"}, follow=True)
        assert "If an account with this e-mail" in asked.text
    assert len(mail.outbox) == 3
    Client().post("/password/reset", {"email": "root@acme.example"})
    assert len(mail.outbox) == 4


@pytest.mark.parametrize(
    "address", ["mei@acme", "mei@acme.example\nBcc: eve@acme.example", "x" * 300]
)
def test_an_address_of_the_provider_that_is_none_is_left_out(db: None, address: str) -> None:
    provider = SsoProvider(issuer="https://id.acme.example", client_id="n", client_secret="s")
    identity = SsoIdentity(issuer=provider.issuer, subject="1", username="mei", email=address)
    assert user_sign_in(identity=identity, provider=provider, at=timezone.now()).email == ""
