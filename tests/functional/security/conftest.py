"""Fixtures of the attacks: the role matrix's two teams, and a gateway process."""

from __future__ import annotations

from tests.functional.roles.conftest import undone, world
from tests.integration.gateway.conftest import control, engine, gateway, stopped_gateway

__all__ = ["control", "engine", "gateway", "stopped_gateway", "undone", "world"]
