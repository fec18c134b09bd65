"""A small company to look at: two teams, one card kind, a bit of everything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from apps.accounts.models import Team
from apps.fleet.models import Cluster
from controlplane.domain.common.permissions import TeamRole
from tests import factories
from tests.functional.sample_rows import EmptyCompany, FilledCompany, empty_company


@pytest.fixture(autouse=True, scope="session")
def static_folder() -> None:
    """Whitenoise warns where collected files would lie and nothing does."""
    Path(settings.STATIC_ROOT).mkdir(parents=True, exist_ok=True)


@pytest.fixture
def team(request: pytest.FixtureRequest, db: None) -> Team:
    if "filled" not in request.fixturenames:
        return factories.team("maps")
    filled: FilledCompany = request.getfixturevalue("filled")
    return filled.team


@pytest.fixture
def empty(request: pytest.FixtureRequest, team: Team) -> EmptyCompany:
    if "filled" not in request.fixturenames:
        return empty_company(team)
    filled: FilledCompany = request.getfixturevalue("filled")
    return EmptyCompany(team=team, user=filled.user, queue=filled.queue)


@pytest.fixture
def filled(prepared_rows: Any, db: None) -> FilledCompany:
    """Made once; see ``tests/functional/prepared_rows.py``."""
    rows: FilledCompany = prepared_rows
    return rows


@pytest.fixture
def browser(client: Client, empty: EmptyCompany) -> Client:
    """Logged in as an engineer of the team."""
    client.force_login(empty.user)
    return client


@pytest.fixture
def outsider(empty: EmptyCompany) -> Client:
    """Logged in as an engineer of another team."""
    client = Client()
    client.force_login(factories.user("bob", team=factories.team("search")))
    return client


def logged_in(
    name: str, *, team: Team, role: TeamRole = TeamRole.VIEWER, operator: bool = False
) -> Client:
    """Logged in as somebody new in the team, who by default may only look."""
    client = Client()
    client.force_login(factories.user(name, team=team, role=role, operator=operator))
    return client


@pytest.fixture
def viewer(team: Team) -> Client:
    """Logged in as somebody who may only look."""
    return logged_in("vera", team=team)


@pytest.fixture
def operator(team: Team) -> Client:
    """Logged in as somebody who operates the fleet."""
    return logged_in("otto", team=team, role=TeamRole.VIEWER, operator=True)


@pytest.fixture
def cluster(db: None) -> Cluster:
    """One node of four cards."""
    return factories.cluster(cards=4)
