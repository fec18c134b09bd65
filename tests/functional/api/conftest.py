from __future__ import annotations

import uuid
from pathlib import Path

import pytest
from pytest_django import Settings
from rest_framework.test import APIClient

from apps.accounts import services as accounts
from apps.accounts.models import User
from controlplane.adapters.engines.transformers import TransformersEngine
from controlplane.domain.common.permissions import CompanyRole, TeamRole
from controlplane.ports import adapter_registry
from controlplane.ports.engines import Engine
from tests.functional.api.callers import caller
from tests.integration import company as companies
from tests.integration.company import Company


@pytest.fixture
def installation(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own, the real engine, and one that the fake cluster's jobs can run."""
    settings.NINEFOLD_HOME = tmp_path / "home"
    settings.NINEFOLD_HOME.mkdir()
    settings.NINEFOLD_MODEL_ROOTS = [str(tmp_path / "models")]
    engines: dict[str, Engine] = {
        engine.name: engine for engine in (companies.PlainEngine(), TransformersEngine())
    }
    monkeypatch.setattr(adapter_registry, "engine_by_name", engines.__getitem__)
    monkeypatch.setattr(adapter_registry, "engine_names", lambda: tuple(engines))
    return tmp_path


@pytest.fixture
def company(installation: Path, db: None) -> Company:
    """Two cards on one node; nothing runs yet."""
    return companies.found(node=f"fake-{uuid.uuid4().hex[:12]}")


@pytest.fixture
def committed_company(installation: Path, transactional_db: None) -> Company:
    """The same for tests with threads: what is written is committed."""
    return companies.found(node=f"fake-{uuid.uuid4().hex[:12]}")


@pytest.fixture
def engineer(company: Company) -> APIClient:
    return caller(company.engineer)


@pytest.fixture
def stranger(company: Company) -> APIClient:
    """An engineer of another team."""
    return caller(company.stranger)


@pytest.fixture
def viewer(company: Company) -> APIClient:
    """Somebody who may look at the engineer's team and no more."""
    return _colleague(company, "vera", role=TeamRole.VIEWER)


@pytest.fixture
def operator(company: Company) -> APIClient:
    """Somebody of the engineer's team who operates the fleet."""
    return _colleague(company, "olga", role=TeamRole.VIEWER, operator=True)


def _colleague(company: Company, name: str, *, role: TeamRole, operator: bool = False) -> APIClient:
    user = User.objects.create(username=name)
    accounts.membership_set(team=company.team, user=user, roles=frozenset({role}), actor=None)
    if operator:
        roles = frozenset({CompanyRole.OPERATOR})
        accounts.company_roles_set(user=user, roles=roles, actor=None)
    return caller(user)
