"""Another team's things are not there: not in lists, counts, choices, messages, nor by their absence."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from django.contrib import admin
from django.utils import timezone

from tests.functional.roles.asking import ask, still, text_of
from tests.functional.roles.conftest import World, client_of
from tests.functional.roles.rules import Row, Whose
from tests.functional.roles.sides import MARK, RANDOM
from tests.functional.roles.table import PAGES, REST

pytestmark = pytest.mark.django_db

INSIDERS = ("engineer", "operator", "administrator")
ROWS = (*REST, *PAGES)
LOOKS = [row for row in ROWS if row.method == "GET"]
ABOUT = [row for row in ROWS if row.of_a_team]
_TEAM, _QUEUE = f"team {MARK}", f"{MARK}-queue"
#: Whoever waits for a card wants to know which team has it, and through which queue: said on purpose, by those
#: names alone.
HOLDERS: Mapping[str, tuple[str, ...]] = {
    "/topology?at=node:here/here-1": (f">{MARK}</td>", _QUEUE),
    "/topology/cards.json": (f'"{MARK}"', _QUEUE),
    "/api/v1/topology?at=node:here/here-1": (f'"team":"{MARK}"', _QUEUE),
    "/fleet": (_TEAM,),
    "/fleet/clusters/{cluster}/nodes/{node.name}": (_TEAM,),
    "/queues": (_TEAM, _QUEUE),
    "/queues/{queue}/reclaim?chip=cpu&cards=1&together=1": (_TEAM, _QUEUE),
    "/claims/{claim.waiting}/what-if": (_TEAM, _QUEUE),
}


def _uids(names: Mapping[str, str]) -> set[str]:
    return {name for name in names.values() if len(name) == 32}


@pytest.mark.parametrize("who", INSIDERS)
@pytest.mark.parametrize("row", LOOKS, ids=str)
def test_an_answer_shows_nothing_of_another_team(world: World, row: Row, who: str) -> None:
    text = text_of(ask(client_of(who, world), row, world.names(Whose.OWN)))
    for said in HOLDERS.get(row.path, ()):
        text = text.replace(said, "")
    assert MARK not in text.lower()
    assert {uid for uid in _uids(world.other.names) if uid in text} == set()


@pytest.mark.parametrize("who", ["engineer", "administrator"])
@pytest.mark.parametrize("row", ABOUT, ids=str)
def test_what_is_another_teams_looks_like_what_never_was(undone: World, row: Row, who: str) -> None:
    client = client_of(who, undone)
    theirs = undone.other.names
    nobodys = {
        name: RANDOM if len(value) == 32 else "nobody-at-all" for name, value in theirs.items()
    }
    found = ask(client, row, undone.everybodys | theirs)
    absent = ask(client, row, undone.everybodys | nobodys)
    assert found.status_code == absent.status_code
    assert still(text_of(found), theirs) == still(text_of(absent), nobodys)


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


@pytest.mark.parametrize(("path", "field", "value"), REFERENCES)
def test_naming_another_teams_thing_is_refused_like_naming_nothing(
    undone: World, path: str, field: str, value: str
) -> None:
    row = next(row for row in REST if (row.method, row.path) == ("POST", path))
    client = client_of("engineer", undone)
    answers = []
    for name in (undone.other.names, dict.fromkeys(undone.other.names, RANDOM)):
        own = undone.names(Whose.OWN)
        body = {**row.body, field: name[value.strip("{}")]}
        asked = Row(method="POST", path=path, body=body)
        answer = ask(client, asked, own)
        answers.append((answer.status_code, still(text_of(answer), undone.other.names)))
    assert answers[0] == answers[1]
    assert answers[0][0] in (400, 422)


LISTS = [row for row in PAGES if row.method == "GET" and "{" not in row.path]


@pytest.mark.parametrize("parameter", ["before", "after", "team", "model"])
@pytest.mark.parametrize("row", LISTS, ids=str)
def test_a_parameter_that_names_another_teams_thing_changes_nothing(
    world: World, row: Row, parameter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = client_of("engineer", world)
    joint = "&" if "?" in row.path else "?"
    said = []
    now = timezone.now()
    monkeypatch.setattr("django.utils.timezone.now", lambda: now)
    for uid in (world.other.names["job"], RANDOM):
        asked = Row(method="GET", path=f"{row.path}{joint}{parameter}={uid}")
        said.append(still(text_of(ask(client, asked, {})), {"job": world.other.names["job"]}))
    assert said[0] == said[1]


@pytest.mark.parametrize("word", [MARK, "zeb", "ZEBRA-serving"])
def test_searching_finds_nothing_of_another_team(world: World, word: str) -> None:
    client = client_of("engineer", world)
    answer = text_of(ask(client, Row(method="GET", path=f"/search?q={word}"), {}))
    assert {uid for uid in _uids(world.other.names) if uid in answer} == set()
    # Where the word itself is shown again, it stands alone.
    assert f"{MARK} " not in answer.lower().replace(f"{MARK} ·", "")
    assert f"{MARK}-model" not in answer


@pytest.mark.parametrize("who", ["queue_admin", "operator", "administrator"])
@pytest.mark.parametrize("model", admin.site._registry, ids=lambda model: model._meta.label_lower)
def test_the_admin_shows_nothing_of_another_team(world: World, model: type, who: str) -> None:
    meta = model._meta  # type: ignore[attr-defined]
    client = client_of(who, world)
    base = f"/admin/{meta.app_label}/{meta.model_name}/"
    for path in (base, f"{base}?q={MARK}", f"{base}add/"):
        answer = client.get(path)
        assert answer.status_code in (200, 302, 403)
        said = text_of(answer).lower().replace(f"q={MARK}", "").replace(f'value="{MARK}"', "")
        # What they looked for themselves is said back to them.
        said = said.replace(f"“{MARK}”", "")
        assert MARK not in said, path


@pytest.mark.parametrize("who", ["viewer", "engineer"])
def test_the_admin_is_closed_to_those_who_administer_nothing(world: World, who: str) -> None:
    answer = client_of(who, world).get("/admin/")
    assert answer.status_code == 302
    assert answer["Location"].startswith("/admin/login")
