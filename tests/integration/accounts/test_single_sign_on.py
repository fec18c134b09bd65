"""Logging in by an OpenID provider, over real HTTP to a real one."""

from __future__ import annotations

import base64
import hashlib
import socket
import uuid

import pytest
from django.contrib.sessions.backends.base import SessionBase
from django.test import Client

from apps.accounts import services
from apps.accounts.models import AuditEntry, ExternalIdentity, Membership, Team, User
from apps.accounts.selectors import company_roles_of
from controlplane.domain.common.permissions import CompanyRole, TeamRole
from tests import factories
from tests.integration.accounts.conftest import SignOn, query_of, running_provider

pytestmark = pytest.mark.django_db


def logged_in_as(client: Client) -> str | None:
    key = client.session.get("_auth_user_id")
    return User.objects.get(pk=key).username if key else None


def roles(username: str) -> set[tuple[str, str, str]]:
    rows = Membership.objects.filter(user__username=username)
    return {(row.team.slug, row.role, row.source) for row in rows.select_related("team")}


def departure_of(session: SessionBase) -> dict[str, str]:
    """What the session keeps until the person is back."""
    state = next(value for name, value in session.items() if name.startswith("_state_"))
    data: dict[str, str] = state["data"]
    return data


@pytest.fixture
def subject() -> str:
    """The provider outlives a test; nobody in it is met twice."""
    return f"mei-{uuid.uuid4().hex[:8]}"


def test_a_new_user_gets_the_roles_of_their_groups(
    client: Client, sign_on: SignOn, subject: str
) -> None:
    sign_on.user(
        subject, email="mei@acme.example", email_verified=True, given_name="Mei", groups=["ml"]
    )
    response = sign_on.log_in(client, subject, next_url="/jobs")
    assert (response.status_code, response["Location"]) == (302, "/jobs")
    assert logged_in_as(client) == subject
    user = User.objects.get(username=subject)
    assert (user.email, user.first_name) == ("mei@acme.example", "Mei")
    assert not user.has_usable_password()
    assert not user.is_staff
    assert roles(subject) == {("maps", "engineer", "sign_on")}
    actions = AuditEntry.objects.filter(object_uid=user.uid).values_list("action", flat=True)
    assert set(actions) == {"user.enrol", "membership.sync", "session.begin"}
    assert AuditEntry.objects.get(action="session.begin").detail == {"by": "Acme ID"}


def test_the_authorization_request_has_pkce_state_and_nonce(
    client: Client, sign_on: SignOn
) -> None:
    asked = query_of(client.get("/sign-on")["Location"])
    assert asked["code_challenge_method"] == "S256"
    assert asked["response_type"] == "code"
    assert asked["redirect_uri"] == "http://testserver/sign-on/callback"
    assert len(asked["state"]) >= 20
    assert len(asked["nonce"]) >= 20
    digest = hashlib.sha256(departure_of(client.session)["code_verifier"].encode()).digest()
    assert asked["code_challenge"] == base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def test_a_returning_user_is_identified_by_subject_alone(
    client: Client, sign_on: SignOn, subject: str
) -> None:
    sign_on.user(subject)
    sign_on.log_in(client, subject)
    sign_on.user(subject, preferred_username="renamed-since")
    other = Client()
    sign_on.log_in(other, subject)
    assert logged_in_as(other) == subject
    assert ExternalIdentity.objects.get(subject=subject).name == "renamed-since"


def test_group_roles_are_synced_at_each_sign_in_and_local_roles_stay(
    client: Client, sign_on: SignOn, subject: str, maps: Team
) -> None:
    sign_on.user(subject, groups=["ml", "ghosts"])
    sign_on.log_in(client, subject)
    user = User.objects.get(username=subject)
    services.membership_set(
        team=maps, user=user, roles=frozenset({TeamRole.ENGINEER, TeamRole.QUEUE_ADMIN}), actor=None
    )
    sign_on.user(subject, groups=["leads"])
    sign_on.log_in(Client(), subject)
    assert roles(subject) == {
        ("maps", "queue_admin", "local"),
        ("maps", "administrator", "sign_on"),
        ("search", "viewer", "sign_on"),
    }
    # A provider that says nothing of groups grants none.
    sign_on.user(subject)
    sign_on.log_in(Client(), subject)
    assert roles(subject) == {("maps", "queue_admin", "local")}


def test_company_administration_follows_its_group(
    client: Client, sign_on: SignOn, subject: str
) -> None:
    factories.user("keeper", admin=True)
    for groups, is_administrator in ((["root"], True), ([], False)):
        sign_on.user(subject, groups=groups)
        sign_on.log_in(Client(), subject)
        user = User.objects.get(username=subject)
        assert (user.is_superuser, user.is_staff) == (is_administrator, is_administrator)
    # Given here, it does not go with the group.
    User.objects.filter(username=subject).update(is_superuser=True)
    sign_on.log_in(Client(), subject)
    assert User.objects.get(username=subject).is_superuser


def test_the_company_operator_role_follows_its_group(sign_on: SignOn, subject: str) -> None:
    for groups, held in ((["sre"], {"operator"}), ([], set())):
        sign_on.user(subject, groups=groups)
        sign_on.log_in(Client(), subject)
        user = User.objects.get(username=subject)
        assert set(company_roles_of(user)) == held
        assert user.is_staff is bool(held)
    # Granted here, it does not go with the group.
    services.company_roles_set(user=user, roles=frozenset({CompanyRole.OPERATOR}), actor=None)
    for groups in (["sre"], []):
        sign_on.user(subject, groups=groups)
        sign_on.log_in(Client(), subject)
        assert set(company_roles_of(user)) == {"operator"}
    audited = AuditEntry.objects.filter(action="company_roles.set").order_by("pk")
    assert [row.detail["roles"] for row in audited] == [["operator"], [], ["operator"]]


def test_the_last_administrator_of_the_company_stays_one_without_the_group(
    sign_on: SignOn, subject: str
) -> None:
    for groups in (["root"], []):
        sign_on.user(subject, groups=groups)
        sign_on.log_in(Client(), subject)
        assert User.objects.get(username=subject).is_superuser
    entry = AuditEntry.objects.get(action="user.keep")
    assert (entry.object_name, entry.detail) == (subject, {"by": "Acme ID"})
    # Not for good: the group counts again as soon as somebody else is there.
    factories.user("keeper", admin=True)
    sign_on.log_in(Client(), subject)
    assert not User.objects.get(username=subject).is_superuser
    assert AuditEntry.objects.filter(action="user.demote", object_name=subject).exists()


def test_the_last_administrator_of_the_company_cannot_unlink_what_makes_them_one(
    client: Client, sign_on: SignOn, subject: str
) -> None:
    sign_on.user(subject, groups=["root"])
    sign_on.log_in(client, subject)
    user = User.objects.get(username=subject)
    user.set_password("open sesame")
    user.save(update_fields=["password"])
    client.force_login(user)
    unlink = f"/profile/sign-on/{user.identities.get().pk}/unlink"
    assert "is the last administrator of the company" in client.post(unlink, follow=True).text
    assert user.identities.exists()
    factories.user("keeper", admin=True)
    client.post(unlink)
    assert not user.identities.exists()
    assert not User.objects.get(username=subject).is_superuser


def test_a_role_of_the_provider_cannot_be_taken_away_here(
    client: Client, sign_on: SignOn, subject: str, maps: Team
) -> None:
    sign_on.user(subject, groups=["ml"])
    sign_on.log_in(client, subject)
    lead = factories.user("lead", team=maps, role=TeamRole.ADMINISTRATOR)
    with pytest.raises(services.MembershipRefused, match="remove them from the group there"):
        services.membership_set(
            team=maps, user=User.objects.get(username=subject), roles=frozenset(), actor=lead
        )


def test_an_account_of_that_name_is_never_taken_over(
    client: Client, sign_on: SignOn, subject: str
) -> None:
    local = factories.user(subject)
    sign_on.user(subject)
    response = sign_on.log_in(client, subject)
    assert response.status_code == 403
    assert f"An account named {subject} exists" in response.text
    assert "link it on your profile" in response.text
    assert logged_in_as(client) is None
    assert not local.identities.exists()


def test_an_account_of_that_address_is_never_taken_over(
    client: Client, sign_on: SignOn, subject: str
) -> None:
    User.objects.create_user("somebody", "shared@acme.example")
    sign_on.user(subject, email="Shared@acme.example", email_verified=True)
    assert sign_on.log_in(client, subject).status_code == 403
    assert logged_in_as(client) is None


def test_an_unverified_email_is_ignored(client: Client, sign_on: SignOn, subject: str) -> None:
    User.objects.create_user("somebody", "boss@acme.example")
    sign_on.user(subject, email="boss@acme.example", email_verified=False)
    sign_on.log_in(client, subject)
    assert logged_in_as(client) == subject
    assert User.objects.get(username=subject).email == ""


def test_a_callback_works_once(client: Client, sign_on: SignOn, subject: str) -> None:
    sign_on.user(subject)
    back = sign_on.come_back(client, subject)
    assert client.get(back).status_code == 302
    client.post("/logout")
    again = client.get(back)
    assert again.status_code == 400
    assert "already used" in again.text
    assert logged_in_as(client) is None


def test_a_callback_of_another_browser_is_refused(
    client: Client, sign_on: SignOn, subject: str
) -> None:
    sign_on.user(subject)
    back = sign_on.come_back(client, subject)
    victim = Client()
    assert victim.get(back).status_code == 400
    assert logged_in_as(victim) is None


def test_a_callback_with_another_state_is_refused(
    client: Client, sign_on: SignOn, subject: str
) -> None:
    sign_on.user(subject)
    back = sign_on.come_back(client, subject)
    state = query_of(back)["state"]
    assert client.get(back.replace(state, "x" * len(state))).status_code == 400
    assert logged_in_as(client) is None


def test_a_callback_with_another_nonce_is_refused(
    client: Client, sign_on: SignOn, subject: str
) -> None:
    sign_on.user(subject)
    back = sign_on.come_back(client, subject)
    session = client.session
    departure_of(session)["nonce"] = "of another log-in"
    session.save()
    response = client.get(back)
    assert response.status_code == 502
    assert "could not be verified" in response.text
    assert logged_in_as(client) is None


def test_a_token_for_another_program_is_refused(
    client: Client, sign_on: SignOn, subject: str
) -> None:
    sign_on.user(subject)
    departed = client.get("/sign-on")["Location"].replace("client_id=ninefold", "client_id=other")
    back = sign_on.agree(departed, subject)
    assert client.get(back.removeprefix("http://testserver")).status_code == 502
    assert logged_in_as(client) is None


def test_a_refusal_by_the_provider_says_so(client: Client, sign_on: SignOn) -> None:
    state = query_of(client.get("/sign-on")["Location"])["state"]
    response = client.get("/sign-on/callback", {"error": "access_denied", "state": state})
    assert response.status_code == 403
    assert "Acme ID denied access" in response.text


def test_an_unreachable_provider_shows_an_error_with_a_remedy(
    client: Client, sign_on: SignOn
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    sign_on.configure(issuer=f"http://127.0.0.1:{port}")
    response = client.get("/sign-on")
    assert response.status_code == 503
    assert "does not respond" in response.text


def test_a_provider_that_fails_during_sign_in_shows_an_error(
    client: Client, sign_on: SignOn, subject: str
) -> None:
    with running_provider() as issuer:
        sign_on.configure(issuer=issuer)
        back = sign_on.come_back(client, subject)
    response = client.get(back)
    assert response.status_code == 503
    assert logged_in_as(client) is None


def test_a_provider_under_another_name_is_not_trusted(client: Client, sign_on: SignOn) -> None:
    sign_on.configure(issuer=sign_on.provider.issuer.replace("localhost", "127.0.0.1") + "/")
    response = client.get("/sign-on")
    assert response.status_code in (502, 503)


def test_sign_in_is_no_open_redirect(client: Client, sign_on: SignOn, subject: str) -> None:
    sign_on.user(subject)
    for elsewhere in ("https://evil.example/", "//evil.example", "javascript:alert(1)"):
        assert sign_on.log_in(Client(), subject, next_url=elsewhere)["Location"] == "/"


def test_a_deactivated_user_cannot_sign_in(client: Client, sign_on: SignOn, subject: str) -> None:
    sign_on.user(subject)
    sign_on.log_in(client, subject)
    User.objects.filter(username=subject).update(is_active=False)
    response = sign_on.log_in(Client(), subject)
    assert response.status_code == 403
    assert "is deactivated" in response.text


def test_without_a_user_name_the_log_in_says_which_claim_is_missing(
    client: Client, sign_on: SignOn, subject: str
) -> None:
    sign_on.configure(username_claim="upn")
    sign_on.user(subject)
    response = sign_on.log_in(client, subject)
    assert response.status_code == 502
    assert "upn" in response.text


def test_an_identity_is_linked_and_unlinked_on_the_profile(
    client: Client, sign_on: SignOn, subject: str
) -> None:
    ada = factories.user("ada")
    client.force_login(ada)
    sign_on.user(subject, groups=["ml"])
    link = client.get("/profile").context["link"]
    departed = client.get(f"/sign-on/link/{link}")
    back = sign_on.agree(departed["Location"], subject)
    linked = client.get(back.removeprefix("http://testserver"), follow=True)
    assert "Single sign-on account linked. You can sign in with Acme ID now." in linked.text
    assert roles("ada") == {("maps", "engineer", "sign_on")}
    other = Client()
    sign_on.log_in(other, subject)
    assert logged_in_as(other) == "ada"

    identity = ada.identities.get()
    assert client.post(f"/profile/sign-on/{identity.pk}/unlink").status_code == 302
    assert roles("ada") == set()
    assert not ada.identities.exists()


def test_a_link_token_of_another_user_links_nothing(client: Client, sign_on: SignOn) -> None:
    eve, ada = factories.user("eve"), factories.user("ada")
    client.force_login(eve)
    stolen = client.get("/profile").context["link"]
    client.force_login(ada)
    assert client.get(f"/sign-on/link/{stolen}")["Location"] == "/profile"


def test_where_the_provider_is_required_only_administrators_use_a_password(
    client: Client, sign_on: SignOn
) -> None:
    sign_on.configure(required=True)
    factories.user("ada")
    factories.user("root", admin=True)
    refused = client.post("/login", {"username": "ada", "password": "open sesame"})
    assert "All users sign in with Acme ID" in refused.text
    assert client.post("/login", {"username": "root", "password": "open sesame"}).status_code == 302


def test_without_a_provider_there_is_no_such_address(client: Client, sign_on: SignOn) -> None:
    sign_on.settings.NINEFOLD_OIDC = None
    for address in ("/sign-on", "/sign-on/callback"):
        assert client.get(address).status_code == 404
    assert "Acme ID" not in client.get("/login").text
