"""Another team's things are not there for those who look for them: by reference, parameter, search and admin.

That no address shows them by itself, ``test_table.py`` sees beside what it asks for.
"""

from __future__ import annotations

import itertools
import re

import pytest
from django.contrib import admin
from django.utils import timezone

from tests.cases import for_each_case
from tests.functional.roles.conftest import World, client_of
from tests.functional.roles.leak_detection import leaked_texts, uids
from tests.functional.roles.permission_rules import PermissionRow, Whose
from tests.functional.roles.permission_table import PAGES, REST
from tests.functional.roles.role_requests import (
    difference,
    normalized,
    noting_role,
    send_request,
    text_of,
)
from tests.functional.roles.team_data import MARK, RANDOM

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

#: Values in a body that name something, where each is tried with another team's and with nobody's.
REFERENCES = [
    ("/api/v1/jobs", "team", "{team}"),
    ("/api/v1/jobs", "queue", "{queue.name}"),
    ("/api/v1/jobs", "model_version", "{version}"),
    ("/api/v1/jobs", "dataset_version", "{dataset_version}"),
    ("/api/v1/jobs", "code", "{artifact}"),
    ("/api/v1/jobs/check", "model_version", "{version}"),
    ("/api/v1/jobs/check", "queue", "{queue.name}"),
    ("/api/v1/pipelines", "team", "{team}"),
    ("/api/v1/pipelines", "queue", "{queue.name}"),
    ("/api/v1/pipelines", "model_version", "{version}"),
    ("/api/v1/deployments", "team", "{team}"),
    ("/api/v1/deployments", "queue", "{queue.name}"),
    ("/api/v1/deployments", "model_version", "{version}"),
    ("/api/v1/keys", "team", "{team}"),
    ("/api/v1/tokens", "team", "{team}"),
]


@for_each_case(("path", "field", "value"), REFERENCES)
def test_objects_of_another_team_are_refused_like_unknown_ones(
    undone: World, path: str, field: str, value: str
) -> None:
    row = next(row for row in REST if (row.method, row.path) == ("POST", path))
    client = client_of("engineer", undone)
    answers = []
    for name in (undone.other.names, dict.fromkeys(undone.other.names, RANDOM)):
        own = undone.names(Whose.OWN)
        body = {**row.body, field: name[value.strip("{}")]}
        asked = PermissionRow(method="POST", path=path, body=body)
        answer = send_request(client, asked, own)
        answers.append((answer.status_code, normalized(text_of(answer), undone.other.names)))
    assert answers[0] == answers[1]
    assert answers[0][0] in (400, 422)


def test_the_leak_detection_finds_leaks(world: World) -> None:
    """A CSRF token is 64 random letters and digits: the mark occurs by chance in one of 480 000."""
    row = next(row for row in PAGES if str(row) == "GET /deployments/new")
    page = text_of(send_request(client_of("queue_admin", world), row, {}))
    tokens = set(re.findall(r'name="csrfmiddlewaretoken" value="(\w{64})"', page))
    assert tokens
    for token in tokens:
        page = page.replace(token, f"ZebrA{token[5:]}")
    theirs = world.other.names
    assert leaked_texts(page, row, theirs) == []
    for leak in (f'<input name="name" value="{MARK}-x">', f"<option>{MARK}</option>"):
        assert leaked_texts(page + leak, row, theirs) == [MARK]
    assert leaked_texts(page + theirs["version"], row, theirs) == [theirs["version"]]


LISTS = [row for row in PAGES if row.method == "GET" and "{" not in row.path]


@pytest.mark.parametrize("row", LISTS, ids=str)
def test_a_parameter_that_names_another_teams_thing_changes_nothing(
    world: World, row: PermissionRow, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = client_of("engineer", world)
    joint = "&" if "?" in row.path else "?"
    now = timezone.now()
    monkeypatch.setattr("django.utils.timezone.now", lambda: now)
    differs = {}
    for parameter in ("before", "after", "team", "model"):
        said = []
        for uid in (world.other.names["job"], RANDOM):
            asked = PermissionRow(method="GET", path=f"{row.path}{joint}{parameter}={uid}")
            said.append(
                normalized(
                    text_of(send_request(client, asked, {})), {"job": world.other.names["job"]}
                )
            )
        if changes := difference(*said):
            differs[parameter] = changes
    assert differs == {}


@pytest.mark.parametrize("word", [MARK, "zeb", "ZEBRA-serving"])
def test_searching_finds_nothing_of_another_team(world: World, word: str) -> None:
    client = client_of("engineer", world)
    answer = text_of(
        send_request(client, PermissionRow(method="GET", path=f"/search?q={word}"), {})
    )
    assert {uid for uid in uids(world.other.names) if uid in answer} == set()
    # Where the word itself is shown again, it stands alone.
    assert f"{MARK} " not in answer.lower().replace(f"{MARK} ·", "")
    assert f"{MARK}-model" not in answer


@for_each_case("model", admin.site._registry)
def test_the_admin_shows_nothing_of_another_team(world: World, model: type) -> None:
    meta = model._meta  # type: ignore[attr-defined]
    base = f"/admin/{meta.app_label}/{meta.model_name}/"
    paths = (base, f"{base}?q={MARK}", f"{base}add/")
    found = []
    for who, path in itertools.product(("queue_admin", "operator", "administrator"), paths):
        with noting_role(who):
            answer = client_of(who, world).get(path)
            said = normalized(text_of(answer)).lower()
        # What they looked for themselves is said back to them.
        for again in (f"q={MARK}", f'value="{MARK}"', f"“{MARK}”"):
            said = said.replace(again, "")
        if answer.status_code not in (200, 302, 403) or MARK in said:
            found.append((who, path, answer.status_code))
    assert found == []


@pytest.mark.parametrize("who", ["viewer", "engineer"])
def test_the_admin_is_closed_to_those_who_administer_nothing(world: World, who: str) -> None:
    answer = client_of(who, world).get("/admin/")
    assert answer.status_code == 302
    assert answer["Location"].startswith("/admin/login")
