"""Fixtures of the attacks: the role matrix's two teams, an installation, a gateway."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.conf import settings
from django.core.cache import cache

from tests.functional.api.conftest import company, engineer, installation, stranger
from tests.functional.roles.conftest import undone, world
from tests.integration.gateway.conftest import control, engine, gateway, stopped_gateway

__all__ = [
    "company",
    "control",
    "engine",
    "engineer",
    "gateway",
    "installation",
    "stopped_gateway",
    "stranger",
    "undone",
    "world",
]


@pytest.fixture(autouse=True, scope="session")
def static_folder() -> None:
    """WhiteNoise warns where the folder of collected files does not exist."""
    Path(settings.STATIC_ROOT).mkdir(parents=True, exist_ok=True)


@pytest.fixture(autouse=True)
def empty_rate_counters() -> None:
    """Rates are counted in the process, which all tests share."""
    cache.clear()
