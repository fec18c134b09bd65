"""The two teams of the role matrix, for tests of what no team may do."""

from __future__ import annotations

from tests.functional.roles.conftest import undone, world

__all__ = ["undone", "world"]
