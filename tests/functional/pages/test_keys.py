"""API keys: access, usage, revocation and rotation."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.test import Client
from django.utils import timezone

from apps.accounts.models import Membership
from apps.accounts.services import token_digest
from apps.serving.models import ApiKey, Gateway
from apps.serving.services.gateways import usage_batch_record
from controlplane.domain.common.permissions import TeamRole
from tests import factories
from tests.functional.sample_rows import FilledCompany

HTMX = {"HX-Request": "true"}


def called(key: ApiKey, *, days_ago: float, calls: int, route: str = "parcels") -> None:
    at = timezone.now() - timedelta(days=days_ago)
    record: dict[str, Any] = {
        "key": key.uid,
        "at": at.isoformat(),
        "route": route,
        "backend": "",
        "operation": "chat",
        "status": 200,
        "outcome": "ok",
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "duration_ms": 80.0,
        "first_token_ms": 20.0,
    }
    sequence = round(days_ago * 1000) + len(route)
    usage_batch_record(gateway="g1", sequence=sequence, records=[record] * calls)


def test_a_new_key_is_shown_once(browser: Client, filled: FilledCompany) -> None:
    form = {"team": filled.team.uid, "name": "ci", "expires": "30", "routes": ["parcels"]}
    response = browser.post("/keys/new", form)
    key = ApiKey.objects.get(name="ci")
    assert token_digest(response.context["text"]) == key.digest
    assert key.routes == ["parcels"]
    assert response.context["text"] not in browser.get("/keys").text


def test_a_limit_of_nothing_is_refused(browser: Client, filled: FilledCompany) -> None:
    form = {"team": filled.team.uid, "name": "ci", "expires": "", "concurrency": "0"}
    assert browser.post("/keys/new", form).status_code == 422


def test_revoked_key_is_listed_only_on_request(browser: Client, filled: FilledCompany) -> None:
    browser.post(f"/keys/{filled.key.uid}/revoke")
    assert filled.key.prefix not in browser.get("/keys").text
    assert 'data-state="revoked"' in browser.get("/keys?state=ended").text


def test_only_the_team_and_its_role_revoke_a_key(
    viewer: Client, outsider: Client, filled: FilledCompany
) -> None:
    assert viewer.post(f"/keys/{filled.key.uid}/revoke").status_code == 403
    assert outsider.post(f"/keys/{filled.key.uid}/revoke").status_code == 404


def test_viewer_sees_why_keys_cannot_be_created(viewer: Client, filled: FilledCompany) -> None:
    assert "are read-only" in viewer.get("/keys/new").text
    form = {"team": filled.team.uid, "name": "ci", "expires": "30"}
    assert viewer.post("/keys/new", form).status_code == 403


def test_a_key_for_another_teams_deployment_is_refused_beside_the_field(
    browser: Client, filled: FilledCompany
) -> None:
    other = factories.team("search")
    Membership.objects.create(user=filled.user, team=other, role=TeamRole.ENGINEER)
    form = {"team": other.uid, "name": "ci", "expires": "30", "routes": ["parcels"]}
    response = browser.post("/keys/new", form)
    assert response.status_code == 422
    assert "parcels" in response.context["form"].errors["routes"][0]


def test_the_list_says_what_each_key_called_in_a_day_and_a_month(
    browser: Client, filled: FilledCompany
) -> None:
    called(filled.key, days_ago=0.1, calls=2)
    called(filled.key, days_ago=3, calls=4)
    called(filled.key, days_ago=40, calls=8)
    [(key, state, may_change)] = browser.get("/keys").context["rows"]
    assert key.recent_usage == {
        "calls_day": 2,
        "tokens_day": 30,
        "calls_month": 6,
        "tokens_month": 90,
    }
    assert timezone.now() - key.last_used_at < timedelta(days=1)
    assert (state, may_change) == ("valid", True)


def test_a_key_that_nobody_used_has_no_usage(browser: Client, filled: FilledCompany) -> None:
    [(key, _state, _may)] = browser.get("/keys").context["rows"]
    assert key.recent_usage is None
    assert key.last_used_at is None


def names(client: Client, query: str) -> list[str]:
    return [key.name for key, _state, _may in client.get(f"/keys?{query}").context["rows"]]


def test_keys_are_found_by_state_beginning_and_deployment(
    browser: Client, filled: FilledCompany
) -> None:
    own: dict[str, Any] = {"actor": filled.user, "team": filled.team}
    narrow, _text = factories.api_key(**own, name="narrow")
    ApiKey.objects.filter(pk=narrow.pk).update(routes=["shaky"])
    past, _text = factories.api_key(**own, name="past")
    ApiKey.objects.filter(pk=past.pk).update(expires_at=timezone.now() - timedelta(days=1))
    assert names(browser, "") == ["narrow", "batch labels"]
    assert names(browser, "state=ended") == ["past"]
    assert names(browser, "state=all") == ["past", "narrow", "batch labels"]
    assert names(browser, "route=shaky") == ["narrow", "batch labels"]
    assert names(browser, "route=parcels") == ["batch labels"]
    assert names(browser, f"text={narrow.prefix}") == ["narrow"]


def test_playground_keys_are_listed_only_on_request(browser: Client, filled: FilledCompany) -> None:
    key, _text = factories.api_key(actor=filled.user, team=filled.team, name="playground (ada)")
    assert "playground (ada)" in names(browser, "")
    ApiKey.objects.filter(pk=key.pk).update(expires_at=key.created_at + timedelta(minutes=15))
    assert "playground (ada)" not in names(browser, "")
    assert "playground (ada)" in names(browser, "playground=on")


def test_the_list_comes_as_csv(browser: Client, filled: FilledCompany) -> None:
    called(filled.key, days_ago=3, calls=4)
    text = b"".join(browser.get("/keys?format=csv")).decode()
    assert "batch labels" in text
    assert ",4,60," in text


def test_the_page_of_a_key_says_which_deployments_it_called(
    browser: Client, filled: FilledCompany
) -> None:
    called(filled.key, days_ago=1, calls=2, route="parcels")
    called(filled.key, days_ago=2, calls=3, route="shaky")
    usage = browser.get(f"/keys/{filled.key.uid}").context["routes"]
    assert [(one.route, one.calls, one.failed) for one in usage] == [
        ("shaky", 3, 0),
        ("parcels", 2, 0),
    ]


def rotate(client: Client, key: ApiKey, overlap: str) -> Any:
    return client.post(f"/keys/{key.uid}/rotate", {"overlap": overlap})


def test_rotated_key_keeps_permissions_and_overlaps(browser: Client, filled: FilledCompany) -> None:
    old = filled.key
    ApiKey.objects.filter(pk=old.pk).update(routes=["parcels"], concurrency=3)
    response = rotate(browser, old, "24")
    new = ApiKey.objects.get(digest=token_digest(response.context["text"]))
    old.refresh_from_db()
    assert (new.name, new.team, new.routes, new.concurrency) == (
        old.name,
        old.team,
        ["parcels"],
        3,
    )
    assert new.expires_at is None
    assert old.revoked_at is None
    assert old.expires_at is not None
    assert timedelta(hours=23) < old.expires_at - timezone.now() < timedelta(hours=25)
    assert "no-store" in response["Cache-Control"]


def test_rotation_does_not_extend_old_key(browser: Client, filled: FilledCompany) -> None:
    soon = timezone.now() + timedelta(hours=2)
    ApiKey.objects.filter(pk=filled.key.pk).update(expires_at=soon)
    rotate(browser, filled.key, "168")
    filled.key.refresh_from_db()
    assert filled.key.expires_at == soon


def test_a_key_replaced_at_once_is_revoked(browser: Client, filled: FilledCompany) -> None:
    assert "was revoked" in rotate(browser, filled.key, "0").text
    filled.key.refresh_from_db()
    assert filled.key.revoked_at is not None


def test_a_key_that_has_ended_is_not_replaced(browser: Client, filled: FilledCompany) -> None:
    browser.post(f"/keys/{filled.key.uid}/revoke")
    response = browser.post(f"/keys/{filled.key.uid}/rotate", {"overlap": "24"}, follow=True)
    assert "has expired or been revoked and cannot be rotated; create a new key" in response.text
    assert ApiKey.objects.count() == 1


def test_only_the_team_and_its_role_replace_a_key(
    viewer: Client, outsider: Client, filled: FilledCompany
) -> None:
    assert rotate(viewer, filled.key, "24").status_code == 403
    assert rotate(outsider, filled.key, "24").status_code == 404


def gateway(name: str, *, version: int) -> None:
    Gateway.objects.create(name=name, version=version, last_seen_at=timezone.now())


def test_key_page_polls_until_every_gateway_has_the_key(
    browser: Client, filled: FilledCompany
) -> None:
    gateway("g1", version=0)
    form = {"team": filled.team.uid, "name": "ci", "expires": "30"}
    response = browser.post("/keys/new", form)
    assert "within a second" in response.text
    version = response.context["version"]
    address = f"/keys/{response.context['key'].uid}/heard?version={version}"
    waiting = browser.get(address, headers=HTMX)
    assert (waiting.status_code, "hx-get" in waiting.text) == (200, True)
    Gateway.objects.update(version=version)
    known = browser.get(address, headers=HTMX)
    assert (known.status_code, "hx-get" in known.text) == (286, False)
    assert "Active" in known.text


def test_without_a_gateway_the_new_keys_page_says_so(
    browser: Client, filled: FilledCompany
) -> None:
    form = {"team": filled.team.uid, "name": "ci", "expires": "30"}
    assert "No gateway was seen" in browser.post("/keys/new", form).text


def test_an_address_with_no_version_is_no_error(browser: Client, filled: FilledCompany) -> None:
    address = f"/keys/{filled.key.uid}/heard?version=%C2%B2{'9' * 40}"
    assert browser.get(address, headers=HTMX).status_code == 200
