from __future__ import annotations

from pathlib import Path

import pytest
from pytest_django import Settings

from tests.integration.founding import committed_company, company, installation

__all__ = ["committed_company", "company", "installation", "model_roots"]


@pytest.fixture(autouse=True)
def model_roots(settings: Settings, tmp_path: Path) -> None:
    """Where models may be registered from."""
    settings.NINEFOLD_MODEL_ROOTS = [str(tmp_path / "models")]
