"""Logging in, the profile, the language."""

from __future__ import annotations

from django.test import Client

from apps.accounts.models import PersonalToken
from tests import factories
from tests.cases import for_each_case
from tests.functional.sample_rows import EmptyCompany

LANDMARKS = ("Home", "Models", "Datasets", "Jobs", "Deployments", "Playground", "Keys", "Fleet")


def test_the_right_password_leads_to_the_page_that_was_asked_for(
    client: Client, empty: EmptyCompany
) -> None:
    form = {"username": "ada", "password": "open sesame", "next": "/jobs"}
    response = client.post("/login", form)
    assert response.status_code == 302
    assert response["Location"] == "/jobs"


def test_a_wrong_password_is_refused_and_the_name_stays(
    client: Client, empty: EmptyCompany
) -> None:
    response = client.post("/login", {"username": "ada", "password": "wrong"})
    assert response.status_code == 200
    assert 'role="alert"' in response.text
    assert 'value="ada"' in response.text


def test_logging_out_needs_a_post_and_ends_the_session(browser: Client) -> None:
    assert browser.get("/logout").status_code == 405
    browser.post("/logout")
    assert browser.get("/").status_code == 302


def test_a_new_token_is_shown_once(browser: Client, empty: EmptyCompany) -> None:
    response = browser.post("/profile", {"name": "laptop", "scopes": ["read"], "expires": "30"})
    token = PersonalToken.objects.get(user=empty.user)
    text = response.context["text"]
    assert text in response.text
    assert token.expires_at is not None
    later = browser.get("/profile").text
    assert text not in later
    assert token.prefix in later


def test_a_token_without_a_name_is_refused_beside_the_field(browser: Client) -> None:
    response = browser.post("/profile", {"name": "", "expires": ""})
    assert "This field is required." in response.text
    assert not PersonalToken.objects.exists()


def test_a_revoked_token_leaves_the_list(browser: Client, empty: EmptyCompany) -> None:
    browser.post("/profile", {"name": "laptop", "scopes": ["read"], "expires": ""})
    token = PersonalToken.objects.get()
    response = browser.post(f"/profile/tokens/{token.uid}/revoke", follow=True)
    token.refresh_from_db()
    assert token.revoked_at is not None
    assert token.prefix not in response.text


def test_nobody_revokes_the_token_of_somebody_else(browser: Client, outsider: Client) -> None:
    browser.post("/profile", {"name": "laptop", "scopes": ["read"], "expires": ""})
    token = PersonalToken.objects.get()
    assert outsider.post(f"/profile/tokens/{token.uid}/revoke").status_code == 404
    token.refresh_from_db()
    assert token.revoked_at is None


def test_the_password_can_be_changed(browser: Client, empty: EmptyCompany) -> None:
    form = {
        "old_password": "open sesame",
        "new_password1": "a longer sentence 7",
        "new_password2": "a longer sentence 7",
    }
    response = browser.post("/profile/password", form, follow=True)
    assert "Password changed. Other browsers" in response.text
    empty.user.refresh_from_db()
    assert empty.user.check_password("a longer sentence 7")


def test_the_language_is_switched_by_a_plain_form(browser: Client) -> None:
    response = browser.post("/i18n/setlang/", {"language": "zh-hans", "next": "/jobs"}, follow=True)
    assert '<html lang="zh-hans"' in response.text
    assert ">作业<" in response.text


@for_each_case("address", ["/", "/models", "/datasets", "/jobs", "/deployments", "/keys", "/fleet"])
def test_chinese_pages_have_no_english_landmarks(browser: Client, address: str) -> None:
    text = browser.get(address, headers={"accept-language": "zh-hans"}).text
    sidebar = text[text.index("<nav") : text.index("</nav>")]
    heading = text[text.index("<h1>") : text.index("</h1>")]
    assert [word for word in LANDMARKS if word in sidebar or word in heading] == []


def test_the_admin_is_offered_to_staff_only(browser: Client) -> None:
    assert 'href="/admin/"' not in browser.get("/").text
    client = Client()
    client.force_login(factories.user("root", admin=True))
    assert 'href="/admin/"' in client.get("/").text


def test_a_form_without_its_token_says_what_to_do(empty: EmptyCompany) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(empty.user)
    response = client.post("/profile", {"name": "laptop"})
    assert response.status_code == 403
    assert "Form expired" in response.text
