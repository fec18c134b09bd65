"""Two teams for the whole folder; what a test changes is undone after it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import transaction
from django.test import Client

from apps.accounts.models import User
from tests import factories
from tests.functional.roles import sides
from tests.functional.roles.rules import Whose
from tests.functional.roles.sides import Side


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Both teams, and what belongs to none."""

    own: Side
    other: Side
    everybodys: dict[str, str]

    def names(self, whose: Whose) -> dict[str, str]:
        side = self.own if whose is Whose.OWN else self.other
        return {**side.names, **self.everybodys}


@pytest.fixture(scope="module")
def world(django_db_setup: None, django_db_blocker: Any) -> Iterator[World]:
    """Made once: with a hundred addresses and eight kinds of people, making it each time would take minutes."""
    Path(settings.STATIC_ROOT).mkdir(parents=True, exist_ok=True)
    with django_db_blocker.unblock(), Undone():
        company = sides.shared()
        factories.person("free")
        own, other = sides.side("maps", company), sides.side(sides.MARK, company)
        everybodys = {**company.names, **sides.company_names()}
        yield World(own=own, other=other, everybodys=everybodys)


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


def client_of(who: str, world: World) -> Client:
    """Somebody's browser."""
    client = Client()
    if who == "anonymous":
        return client
    if who == "company":
        person = User.objects.get(username="root")
    elif who == "deactivated":
        person = User.objects.get(username="maps-gone")
    else:
        person = User.objects.get(uid=world.own.names[f"person.{who}"])
    client.force_login(person)
    return client
