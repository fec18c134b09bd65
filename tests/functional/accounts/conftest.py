"""A team with somebody of each role, another team, and an administrator of the company."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from django.conf import settings
from django.core.cache import cache
from django.test import Client

from apps.accounts.models import Team, User
from controlplane.domain.common.permissions import TeamRole
from tests import factories


@dataclass(frozen=True, slots=True, kw_only=True)
class Staffed:
    maps: Team
    search: Team
    #: By role, in maps.
    of: dict[TeamRole, User]
    #: Administrator of search.
    other: User
    #: Administrator of the company.
    root: User

    @property
    def lead(self) -> User:
        return self.of[TeamRole.ADMINISTRATOR]

    @property
    def engineer(self) -> User:
        return self.of[TeamRole.ENGINEER]


@pytest.fixture(autouse=True, scope="session")
def static_folder() -> None:
    """Whitenoise warns where collected files would lie and nothing does."""
    Path(settings.STATIC_ROOT).mkdir(parents=True, exist_ok=True)


@pytest.fixture(autouse=True)
def no_failed_logins() -> None:
    """Failures are counted in the process, which all tests share."""
    cache.clear()


@pytest.fixture
def staffed(db: None) -> Staffed:
    maps, search = factories.team("maps"), factories.team("search")
    return Staffed(
        maps=maps,
        search=search,
        of={role: factories.user(f"a-{role.value}", team=maps, role=role) for role in TeamRole},
        other=factories.user("other", team=search, role=TeamRole.ADMINISTRATOR),
        root=factories.user("root", admin=True),
    )


def browser(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client
