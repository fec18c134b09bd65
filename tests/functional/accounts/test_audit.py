"""The audit trail: complete, append-only, and for those whom it concerns."""

from __future__ import annotations

import ast
import csv
import io
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib.auth.models import AnonymousUser
from django.core.management import call_command
from django.db import Error, connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone, translation

from apps.accounts import services
from apps.accounts.models import AuditEntry, Team
from apps.accounts.selectors import can_view_audit_log
from apps.accounts.web.audit_log import AUDIT_MESSAGES, RENAMED_ACTIONS, audit_message
from controlplane.domain.common.permissions import Scope, TeamRole
from tests.functional.accounts.conftest import Staffed, browser
from tests.functional.api.callers import API, caller, wrong_fields

APPS = Path(__file__).resolve().parents[3] / "apps"


@pytest.fixture
def happened(staffed: Staffed) -> Staffed:
    """Something in each team and something in none."""
    for team, actor in ((staffed.maps, staffed.engineer), (staffed.search, staffed.other)):
        services.record_audit_entry(
            actor=actor, action="job.submit", team=team, uid="a" * 32, name=f"train {team.name}"
        )
    services.record_audit_entry(
        actor=staffed.root, action="node.cordon", uid="b" * 32, name="node-1"
    )
    return staffed


def shown(client: Client, **query: str) -> list[str]:
    return [one["audit_message"] for one in client.get("/audit", query).context["rows"]]


def test_administrators_see_the_entries_of_their_teams(happened: Staffed) -> None:
    lead = shown(browser(happened.lead))
    assert "a-engineer submitted the job train maps" in lead
    assert not [one for one in lead if "search" in one or "node-1" in one]
    root = shown(browser(happened.root))
    assert "root cordoned the node node-1" in root
    assert "other submitted the job train search" in root


@pytest.mark.parametrize("role", [one for one in TeamRole if one is not TeamRole.ADMINISTRATOR])
def test_other_roles_cannot_see_the_audit_log(happened: Staffed, role: TeamRole) -> None:
    assert browser(happened.of[role]).get("/audit").status_code == 403
    rows = caller(happened.of[role]).get(f"{API}/audit").json()["results"]
    assert rows == []


def test_anonymous_users_see_no_entries(staffed: Staffed) -> None:
    assert not can_view_audit_log(AnonymousUser())


def test_it_is_narrowed_by_who_action_team_object_and_day(happened: Staffed) -> None:
    root = browser(happened.root)
    assert shown(root, who="OTHER") == [
        "other logged in",
        "other submitted the job train search",
    ] or shown(root, who="OTHER") == ["other submitted the job train search"]
    assert shown(root, action="node.cordon") == ["root cordoned the node node-1"]
    assert shown(root, team="search") == ["other submitted the job train search"]
    assert shown(root, object="b" * 32) == ["root cordoned the node node-1"]
    assert shown(root, object="train map") == ["a-engineer submitted the job train maps"]
    today = timezone.now().date()
    assert shown(root, since=today.isoformat(), action="node.cordon")
    assert not shown(root, until=(today - timedelta(days=1)).isoformat())
    # A team that one does not see is no filter, and no hint.
    page = browser(happened.lead).get("/audit", {"team": "search"})
    assert 'value="search"' not in page.text


@pytest.mark.parametrize(("earlier", "present"), RENAMED_ACTIONS.items())
def test_an_entry_of_an_earlier_action_is_found_by_its_present_one(
    happened: Staffed, earlier: str, present: str
) -> None:
    services.record_audit_entry(actor=happened.root, action=earlier, name="of old")
    services.record_audit_entry(actor=happened.root, action=present, name="of today")
    found = shown(browser(happened.root), action=present)
    assert len(found) == 2
    assert found[0].replace("of today", "of old") == found[1]
    assert earlier not in found[1]


def test_who_did_it_is_found_by_an_index_however_the_name_is_written(happened: Staffed) -> None:
    AuditEntry.objects.bulk_create(
        AuditEntry(actor_name=f"somebody-{number}", action="job.submit") for number in range(2000)
    )
    with connection.cursor() as cursor:
        cursor.execute(f"ANALYZE {AuditEntry._meta.db_table}")
    rows = AuditEntry.objects.filter(actor_name__iexact="OTHER").order_by("-id")
    assert "audit_by_actor_any_case" in rows.explain()


def test_the_filters_look_through_no_trail(happened: Staffed) -> None:
    root = browser(happened.root)
    with CaptureQueriesContext(connection) as asked:
        page = root.get("/audit")
    assert 'value="node.cordon"' in page.text
    assert not [one["sql"] for one in asked if "DISTINCT" in one["sql"]]


@pytest.mark.parametrize("role", list(TeamRole))
def test_the_menu_leads_to_the_trail_whom_it_is_for(happened: Staffed, role: TeamRole) -> None:
    page = browser(happened.of[role]).get("/profile").text
    assert ('href="/audit"' in page) is (role is TeamRole.ADMINISTRATOR)
    assert 'href="/people"' not in page


def test_it_comes_as_csv_and_over_rest(happened: Staffed) -> None:
    text = browser(happened.lead).get("/audit", {"format": "csv"}).getvalue().decode("utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert "a-engineer submitted the job train maps" in {row["Event"] for row in rows}
    assert "search" not in text

    lead = caller(happened.lead, Scope.READ)
    found = lead.get(f"{API}/audit", {"action": "job.submit"}).json()["results"]
    assert [(one["actor"], one["object_name"]) for one in found] == [("a-engineer", "train maps")]
    foreign = lead.get(f"{API}/audit", {"team": happened.search.uid})
    assert "no" in wrong_fields(foreign)["team"]


def test_an_entry_says_from_where_and_in_which_request(staffed: Staffed) -> None:
    client = Client(REMOTE_ADDR="203.0.113.9", headers={"X-Request-ID": "abc-123"})
    client.post("/login", {"username": "a-engineer", "password": "open sesame"})
    entry = AuditEntry.objects.get(action="session.begin")
    assert (entry.remote_address, entry.request_id) == ("203.0.113.9", "abc-123")
    # Nothing of it stays behind for what happens without a request.
    services.record_audit_entry(actor=None, action="audit.prune")
    assert AuditEntry.objects.get(action="audit.prune").request_id == ""


def test_every_sentence_is_there_in_both_languages(staffed: Staffed) -> None:
    entries = [
        AuditEntry(actor_name="mei", action=action, object_name="it") for action in AUDIT_MESSAGES
    ]
    for entry in entries:
        assert entry.action not in audit_message(entry)
        with translation.override("zh-hans"):
            assert audit_message(entry) != message_in("en", entry), entry.action


def message_in(language: str, entry: AuditEntry) -> str:
    with translation.override(language):
        return audit_message(entry)


def actions_of_the_code() -> Iterator[str]:
    """Every literal that is given to ``audit`` as its action, also by way of a name."""
    for path in APPS.rglob("*.py"):
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            values: list[ast.expr] = []
            if (isinstance(node, ast.keyword) and node.arg == "action") or (
                isinstance(node, ast.Assign)
                and any(
                    isinstance(target, ast.Name) and target.id == "action"
                    for target in node.targets
                )
            ):
                values = [node.value]
            for value in values:
                yield from literals(value)


def literals(value: ast.expr) -> Iterator[str]:
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        yield value.value
    elif isinstance(value, ast.IfExp):
        yield from literals(value.body)
        yield from literals(value.orelse)


def test_everything_that_is_recorded_has_a_sentence() -> None:
    recorded = {action for action in actions_of_the_code() if "." in action}
    assert len(recorded) > 40
    assert recorded - set(AUDIT_MESSAGES) == set()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE accounts_auditentry SET actor_name = 'nobody'",
        "UPDATE accounts_auditentry SET at = now() - interval '1 day'",
        "UPDATE accounts_auditentry SET request_id = 'x', team_id = NULL",
        "UPDATE accounts_auditentry SET actor_id = (SELECT min(id) FROM accounts_user)",
        "DELETE FROM accounts_auditentry",
        "TRUNCATE accounts_auditentry",
    ],
)
def test_the_database_itself_refuses_to_change_or_delete_an_entry(
    happened: Staffed, statement: str
) -> None:
    before = list(AuditEntry.objects.order_by("id").values())
    with transaction.atomic(), connection.cursor() as cursor:
        # What happened here was not committed; its checks are due before a table is emptied.
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("SAVEPOINT before_it")
        with pytest.raises(Error, match=r"audit (entry|trail) cannot"):
            cursor.execute(statement)
        cursor.execute("ROLLBACK TO SAVEPOINT before_it")
    assert list(AuditEntry.objects.order_by("id").values()) == before


def test_an_entry_outlives_its_team_and_its_actor(happened: Staffed) -> None:
    entry = AuditEntry.objects.get(object_name="train search")
    Team.objects.filter(pk=happened.search.pk).delete()
    happened.other.delete()
    entry.refresh_from_db()
    assert (entry.actor, entry.team, entry.actor_name) == (None, None, "other")


def test_old_entries_go_by_the_command_only(happened: Staffed) -> None:
    count = AuditEntry.objects.count()
    call_command("audit_prune", "--days", "30")
    assert AuditEntry.objects.count() == count
    assert services.audit_prune(before=timezone.now() + timedelta(days=1)) == count
    (left,) = AuditEntry.objects.all()
    assert (left.action, left.detail["count"]) == ("audit.prune", count)
    with pytest.raises(Error, match="cannot be deleted"), transaction.atomic():
        AuditEntry.objects.all().delete()
