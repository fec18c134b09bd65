"""Fixtures around ``tests.integration.company``, for the folders whose tests need one."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
from pytest_django import Settings

from controlplane.ports import adapter_registry
from tests.integration import company as companies


@pytest.fixture
def installation(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own with an artifact store, and one engine that needs no software."""
    settings.NINEFOLD_HOME = tmp_path / "home"
    settings.NINEFOLD_HOME.mkdir()
    engine = companies.PlainEngine()
    monkeypatch.setattr(adapter_registry, "engine_by_name", {engine.name: engine}.__getitem__)
    monkeypatch.setattr(adapter_registry, "engine_names", lambda: (engine.name,))
    return tmp_path


@pytest.fixture
def company(installation: Path, db: None) -> companies.Company:
    """Two cards on one node; nothing runs yet."""
    return companies.found(node=f"fake-{uuid.uuid4().hex[:12]}")


@pytest.fixture
def committed_company(installation: Path, transactional_db: None) -> companies.Company:
    """The same, for tests with threads or killed workers: what is written is committed."""
    return companies.found(node=f"fake-{uuid.uuid4().hex[:12]}")
