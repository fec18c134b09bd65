"""A product whose broker has its folder, and whose kept answers are forgotten between tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings as product_settings
from pytest_django import Settings

from apps.accounts.models import User
from apps.console.web import prometheus_metrics, system_status
from config.celery import app
from tests import factories
from tests.functional.operations.caches import expire


@pytest.fixture(autouse=True, scope="session")
def static_folder() -> None:
    """Whitenoise warns where collected files would lie and nothing does."""
    Path(product_settings.STATIC_ROOT).mkdir(parents=True, exist_ok=True)


@pytest.fixture(autouse=True)
def empty_caches() -> Iterator[None]:
    caches = (
        prometheus_metrics.PRODUCT_METRICS.families,
        prometheus_metrics.READINESS.parts,
        system_status.lagging_controllers,
    )
    for one in caches:
        expire(one)
    yield
    for one in caches:
        expire(one)


@pytest.fixture(autouse=True)
def broker_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the messages of this test lie."""
    folder = tmp_path / "broker"
    folder.mkdir()
    options = {**app.conf.broker_transport_options}
    options |= {name: str(folder) for name in ("data_folder_in", "data_folder_out")}
    monkeypatch.setitem(app.conf, "broker_transport_options", options)
    return folder


@pytest.fixture
def home(settings: Settings, tmp_path: Path) -> Path:
    settings.NINEFOLD_HOME = tmp_path
    return tmp_path


@pytest.fixture
def admin(db: None) -> User:
    return factories.user("root", admin=True)
