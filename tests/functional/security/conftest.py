"""Fixtures of the attacks: the role matrix's two teams, an installation, a gateway."""

from __future__ import annotations

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
