"""Two teams for the whole folder; what a test changes is undone after it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import transaction
from django.test import Client
from django.test.client import ClientHandler

from apps.accounts.models import User
from tests import factories
from tests.functional.roles import team_data
from tests.functional.roles.permission_rules import Whose
from tests.functional.roles.team_data import TeamData

_USERNAMES = {
    "deactivated": "maps-gone",
    **{role: f"maps-{role}" for role in team_data.ROLES},
    "company": "root",
}
#: Who may ask: a stranger, somebody who may no more, each role of the own team, and the company's administrator.
VISITORS = ("anonymous", *_USERNAMES)
_HANDLER = ClientHandler(enforce_csrf_checks=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Both teams, and what belongs to none."""

    own: TeamData
    other: TeamData
    everybodys: dict[str, str]
    #: Who asks, and the session of each; empty for whoever has none.
    sessions: Mapping[str, str]

    def names(self, whose: Whose) -> dict[str, str]:
        side = self.own if whose is Whose.OWN else self.other
        return {**side.names, **self.everybodys}


@pytest.fixture(scope="module")
def world(django_db_setup: None, django_db_blocker: Any) -> Iterator[World]:
    """Made once: with a hundred addresses and eight kinds of people, making it each time would take minutes."""
    Path(settings.STATIC_ROOT).mkdir(parents=True, exist_ok=True)
    with django_db_blocker.unblock(), Undone():
        company = team_data.shared()
        factories.user("free")
        own, other = team_data.side("maps", company), team_data.side(team_data.MARK, company)
        everybodys = {**company.names, **team_data.company_names()}
        visitors = {"anonymous": None} | {
            who: User.objects.get(username=name) for who, name in _USERNAMES.items()
        }
        sessions = {who: _session_of(user) for who, user in visitors.items()}
        yield World(own=own, other=other, everybodys=everybodys, sessions=sessions)


class Undone(transaction.Atomic):
    """A transaction that never happened. Durable ones inside are let be, as Django's own tests do."""

    def __init__(self) -> None:
        super().__init__(using=None, savepoint=True, durable=False)
        self._from_testcase = True

    def __exit__(self, *failure: Any) -> None:
        transaction.set_rollback(True)
        super().__exit__(None, None, None)


@pytest.fixture
def undone(world: World) -> Iterator[World]:
    """The world, for a test that changes it."""
    with Undone():
        yield world


def _session_of(user: User | None) -> str:
    """Its key. They have looked at a page: the first of a session is dearer than all that follow."""
    client = _client()
    if user is not None:
        client.force_login(user)
        client.get("/profile")
    cookie = client.cookies.get(settings.SESSION_COOKIE_NAME)
    return cookie.value if cookie else ""


def _client() -> Client:
    """As Django's, but with the middleware that all share, as all requests to a server do."""
    client = Client()
    client.handler = _HANDLER
    return client


def client_of(who: str, world: World) -> Client:
    """Somebody's browser, new, and logged in."""
    client = _client()
    if key := world.sessions[who]:
        client.cookies[settings.SESSION_COOKIE_NAME] = key
    return client
