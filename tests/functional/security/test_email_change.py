"""Taking over an account by changing its e-mail."""

from __future__ import annotations

import re
import time
from types import SimpleNamespace

import pytest
from django.core import mail, signing
from django.test import Client
from pytest_django import Settings

from apps.accounts.models import AuditEntry, User
from controlplane.domain.accounts.single_sign_on import SsoProvider
from tests import factories

OLD, NEW = "mei@acme.example", "mei@new.example"


@pytest.fixture
def mei(db: None, settings: Settings) -> User:
    settings.NINEFOLD_EMAIL_FROM = "ninefold@acme.example"
    user = factories.user("mei")
    User.objects.filter(pk=user.pk).update(email=OLD)
    return User.objects.get(pk=user.pk)


def browser(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def request_link(client: Client, email: str = NEW) -> str:
    mail.outbox.clear()
    sent = client.post("/profile/email", {"email": email, "password": "open sesame"})
    assert sent.status_code == 302
    (message,) = mail.outbox
    assert message.to == [email]
    link = re.search(r"http://testserver(/profile/email/confirm/\S+)", str(message.body))
    assert link is not None
    return link[1]


def email_of(user: User) -> str:
    return User.objects.get(pk=user.pk).email


def test_the_link_to_the_new_address_changes_it_and_the_old_one_is_notified(mei: User) -> None:
    client, elsewhere = browser(mei), browser(mei)
    link = request_link(client)
    assert NEW in client.get(link).text
    assert email_of(mei) == OLD
    mail.outbox.clear()
    assert client.post(link).status_code == 302
    assert email_of(mei) == NEW
    (notice,) = mail.outbox
    assert notice.to == [OLD]
    assert NEW in notice.body
    assert client.get("/profile").status_code == 200
    assert elsewhere.get("/profile").status_code == 302
    entry = AuditEntry.objects.get(action="email.change")
    assert (entry.actor_name, entry.detail) == ("mei", {"before": OLD, "after": NEW})


def test_a_stolen_session_without_the_password_changes_nothing(mei: User) -> None:
    client = browser(mei)
    answers = [
        client.post("/profile/email", {"email": NEW, "password": "wrong"}).status_code
        for _ in range(5)
    ]
    # Wrong passwords count towards the limits of the log-in.
    assert answers == [200] * 4 + [429]
    client.post("/profile/details", {"email": NEW})
    assert not mail.outbox
    assert email_of(mei) == OLD


def test_a_link_works_once(mei: User) -> None:
    client = browser(mei)
    link = request_link(client)
    client.post(link)
    back = request_link(client, OLD)
    client.post(back)
    assert client.post(link).status_code == 410
    assert email_of(mei) == OLD


def test_a_link_expires(mei: User, monkeypatch: pytest.MonkeyPatch) -> None:
    client = browser(mei)
    link = request_link(client)
    later = time.time() + 24 * 3600 + 60
    monkeypatch.setattr(signing, "time", SimpleNamespace(time=lambda: later))
    assert client.post(link).status_code == 410
    assert email_of(mei) == OLD


def test_a_link_is_for_its_account_and_cannot_be_altered(mei: User) -> None:
    link = request_link(browser(mei))
    other = browser(factories.user("eve"))
    assert other.post(link).status_code == 410
    assert browser(mei).post(f"{link}x").status_code == 410
    assert Client().post(link)["Location"].startswith("/login")
    assert email_of(mei) == OLD


def test_an_address_of_another_account_is_refused_also_at_the_confirmation(mei: User) -> None:
    client = browser(mei)
    link = request_link(client)
    other = factories.user("ada")
    User.objects.filter(pk=other.pk).update(email=NEW.upper())
    refused = client.post("/profile/email", {"email": NEW, "password": "open sesame"})
    assert "a user with the e-mail" in refused.text
    assert client.post(link).status_code == 409
    assert email_of(mei) == OLD


def test_without_a_mail_server_the_page_says_who_changes_it(mei: User, settings: Settings) -> None:
    settings.NINEFOLD_EMAIL_FROM = ""
    client = browser(mei)
    assert "No mail server is configured" in client.get("/profile/email").text
    client.post("/profile/email", {"email": NEW, "password": "open sesame"})
    assert not mail.outbox
    assert email_of(mei) == OLD


def test_an_account_of_single_sign_on_is_sent_to_its_provider(
    mei: User, settings: Settings
) -> None:
    settings.NINEFOLD_OIDC = SsoProvider(
        issuer="https://id.example", client_id="n", client_secret="s", name="Okta"
    )
    mei.set_unusable_password()
    mei.save()
    assert (
        "You sign in with Okta, which manages your e-mail"
        in browser(mei).get("/profile/email").text
    )
