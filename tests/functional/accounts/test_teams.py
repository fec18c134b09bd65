"""Teams: who sees them, and who may change who is in them."""

from __future__ import annotations

import pytest

from apps.accounts import services
from apps.accounts.models import AuditEntry, Membership, Team, User
from controlplane.domain.common.permissions import Scope, TeamRole
from tests import factories
from tests.functional.accounts.conftest import Staffed, browser
from tests.functional.api.callers import API, caller, problem


def roles(user: User, team: Team) -> set[str]:
    return set(Membership.objects.filter(user=user, team=team).values_list("role", flat=True))


def test_people_see_their_teams_and_the_administrator_of_the_company_all(staffed: Staffed) -> None:
    own = browser(staffed.engineer).get("/teams").text
    assert "maps" in own
    assert "search" not in own.replace('role="search"', "").replace("/search", "").lower() or (
        'href="/teams/search"' not in own
    )
    everything = browser(staffed.root).get("/teams").text
    assert 'href="/teams/maps"' in everything
    assert 'href="/teams/search"' in everything


def test_other_teams_are_not_found(staffed: Staffed) -> None:
    client = browser(staffed.lead)
    there, nowhere = client.get("/teams/search"), client.get("/teams/nowhere")
    assert (there.status_code, nowhere.status_code) == (404, 404)
    for path in ("rename", f"members/{staffed.other.uid}", f"members/{staffed.other.uid}/remove"):
        assert client.post(f"/teams/search/{path}").status_code == 404


def test_every_member_sees_who_is_in_the_team_and_what_roles_mean(staffed: Staffed) -> None:
    page = browser(staffed.of[TeamRole.VIEWER]).get("/teams/maps").text
    for role in TeamRole:
        assert f"a-{role.value}" in page
    assert "submit, cancel and retry jobs" in page
    assert "Add person" not in page


@pytest.mark.parametrize("role", [one for one in TeamRole if one is not TeamRole.ADMINISTRATOR])
def test_only_administrators_change_members(staffed: Staffed, role: TeamRole) -> None:
    client = browser(staffed.of[role])
    target = f"/teams/maps/members/{staffed.engineer.uid}"
    assert client.get(target).status_code == 403
    assert client.post(target, {"roles": ["administrator"]}).status_code == 403
    assert client.post(f"{target}/remove").status_code == 403
    form = {"user": "other", "roles": ["viewer"]}
    assert client.post("/teams/maps", form).status_code == 403
    assert roles(staffed.engineer, staffed.maps) == {"engineer"}
    assert not roles(staffed.other, staffed.maps)


def test_users_without_permission_cannot_probe_user_names(staffed: Staffed) -> None:
    client = browser(staffed.of[TeamRole.VIEWER])
    for name in ("other", "nobody at all"):
        form = {"user": name, "roles": ["viewer"]}
        assert client.post("/teams/maps", form).status_code == 403, name


@pytest.mark.parametrize("named_by", ["username", "email"])
def test_somebody_is_added_with_several_roles(staffed: Staffed, named_by: str) -> None:
    invited = factories.user("newcomer")
    invited.email = "new@acme.example"
    invited.save()
    form = {"user": getattr(invited, named_by), "roles": ["engineer", "queue_admin"]}
    done = browser(staffed.lead).post("/teams/maps", form, follow=True)
    assert "newcomer was added to the team." in done.text
    assert roles(invited, staffed.maps) == {"engineer", "queue_admin"}
    entry = AuditEntry.objects.get(action="membership.set", object_uid=invited.uid)
    assert (entry.actor, entry.team) == (staffed.lead, staffed.maps)
    assert entry.detail == {"roles": ["engineer", "queue_admin"], "before": []}


def test_nobody_of_that_name_is_said_beside_the_field(staffed: Staffed) -> None:
    page = browser(staffed.lead).post("/teams/maps", {"user": "nemo", "roles": ["viewer"]})
    assert "No user is named nemo" in page.text


def test_adding_a_role_takes_none_away(staffed: Staffed) -> None:
    browser(staffed.lead).post("/teams/maps", {"user": "a-engineer", "roles": ["viewer"]})
    assert roles(staffed.engineer, staffed.maps) == {"engineer", "viewer"}


def test_the_last_administrator_cannot_leave(staffed: Staffed) -> None:
    client = browser(staffed.lead)
    refused = client.post(f"/teams/maps/members/{staffed.lead.uid}/remove", follow=True)
    assert "is the last administrator of maps" in refused.text
    assert roles(staffed.lead, staffed.maps) == {"administrator"}
    # One who is deactivated keeps no team.
    second = factories.user("second", team=staffed.maps, role=TeamRole.ADMINISTRATOR)
    User.objects.filter(pk=second.pk).update(is_active=False)
    client.post(f"/teams/maps/members/{staffed.lead.uid}/remove")
    assert roles(staffed.lead, staffed.maps) == {"administrator"}


def test_the_administrator_of_the_company_may_leave_a_team_without_one(staffed: Staffed) -> None:
    browser(staffed.root).post(f"/teams/maps/members/{staffed.lead.uid}/remove")
    assert not roles(staffed.lead, staffed.maps)


def test_lowering_oneself_asks_first(staffed: Staffed) -> None:
    factories.user("second", team=staffed.maps, role=TeamRole.ADMINISTRATOR)
    client = browser(staffed.lead)
    address = f"/teams/maps/members/{staffed.lead.uid}"
    asked = client.post(address, {"roles": ["viewer"]})
    assert "remove your own permission" in asked.text
    assert roles(staffed.lead, staffed.maps) == {"administrator"}
    client.post(address, {"roles": ["viewer"], "sure": "1"})
    assert roles(staffed.lead, staffed.maps) == {"viewer"}


def test_teams_are_made_and_renamed_by_the_administrator_of_the_company(staffed: Staffed) -> None:
    form = {"name": "Voice", "slug": "voice"}
    assert browser(staffed.lead).post("/teams/new", form).status_code == 403
    assert browser(staffed.root).post("/teams/new", form)["Location"] == "/teams/voice"
    taken = browser(staffed.root).post("/teams/new", {"name": "Voice", "slug": "voice-2"})
    assert "a team named Voice already exists" in taken.text
    reserved = browser(staffed.root).post("/teams/new", {"name": "New", "slug": "new"})
    assert "choose another" in reserved.text
    assert browser(staffed.lead).post("/teams/maps/rename", {"name": "X"}).status_code == 403
    browser(staffed.root).post("/teams/maps/rename", {"name": "Geo"})
    staffed.maps.refresh_from_db()
    assert (staffed.maps.name, staffed.maps.slug) == ("Geo", "maps")


def test_who_may_enter_the_admin_follows_from_roles(staffed: Staffed) -> None:
    for role, user in staffed.of.items():
        user.refresh_from_db()
        assert user.is_staff is (role in services.ADMIN_ROLES), role
    services.membership_set(
        team=staffed.maps,
        user=staffed.of[TeamRole.QUEUE_ADMIN],
        roles=frozenset({TeamRole.ENGINEER}),
        actor=staffed.lead,
    )
    assert not User.objects.get(username="a-queue_admin").is_staff


def test_members_over_rest(staffed: Staffed) -> None:
    lead = caller(staffed.lead, Scope.ADMIN)
    members = f"{API}/teams/{staffed.maps.uid}/members"
    listed = lead.get(members).json()
    assert {one["username"]: one["roles"] for one in listed}["a-viewer"] == ["viewer"]
    put = lead.put(f"{members}/{staffed.other.uid}", {"roles": ["engineer", "viewer"]})
    assert put.json()["roles"] == ["engineer", "viewer"]
    assert lead.delete(f"{members}/{staffed.other.uid}").status_code == 204
    problem(lead.delete(f"{members}/{staffed.other.uid}"), 404, "not-found")
    problem(lead.delete(f"{members}/{staffed.lead.uid}"), 409, "membership-refused")
    assert roles(staffed.lead, staffed.maps) == {"administrator"}


def test_rest_keeps_others_out(staffed: Staffed) -> None:
    engineer = caller(staffed.engineer)
    own = f"{API}/teams/{staffed.maps.uid}/members"
    other = f"{API}/teams/{staffed.search.uid}/members"
    body = {"roles": ["administrator"]}
    problem(engineer.put(f"{own}/{staffed.engineer.uid}", body), 403, "permission-refused")
    problem(engineer.get(other), 404, "not-found")
    problem(engineer.put(f"{other}/{staffed.engineer.uid}", body), 404, "not-found")
    problem(engineer.post(f"{API}/teams", {"name": "x", "slug": "x"}), 403, "permission-refused")
    created = caller(staffed.root).post(f"{API}/teams", {"name": "Voice", "slug": "voice"})
    assert created.status_code == 201
