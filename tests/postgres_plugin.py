"""Gives a test run a PostgreSQL and a home folder of its own, before Django reads its settings.

Loaded early (``-p tests.postgres_plugin``). ``NINEFOLD_TEST_DATABASE_URL`` names a server to use
instead. Otherwise one is started in a temporary folder and ends with the run, even a killed one.
Under pytest-xdist only the controller starts it; the workers inherit its address.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest

from launcher.postgres import PostgresFailed, start_temporary
from launcher.postgres_binaries import NoFittingPostgres

_GIVEN = "NINEFOLD_TEST_DATABASE_URL"
_USED = "NINEFOLD_DATABASE_URL"
_HOME = "NINEFOLD_HOME"


# A wrapper runs before every plain hook, so before pytest-django reads the settings in its own.
@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None]:
    if "PYTEST_XDIST_WORKER" not in os.environ:
        os.environ[_USED] = os.environ.get(_GIVEN) or _start(early_config)
        home = _temporary("ninefold-home-", early_config)
        (home / "static").mkdir()
        os.environ[_HOME] = str(home)
    return (yield)


def _temporary(prefix: str, config: pytest.Config) -> Path:
    """A folder that goes with the run."""
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
    return folder


def _start(config: pytest.Config) -> str:
    folder = _temporary("ninefold-pg-", config)
    try:
        running = start_temporary(folder)
    except (PostgresFailed, NoFittingPostgres) as error:
        raise pytest.UsageError(
            f"no PostgreSQL for the tests: {error}\nor name one: {_GIVEN}=postgresql://…"
        ) from error
    config.add_cleanup(running.stop)
    return running.url
