"""Gives a test run a PostgreSQL and a home folder of its own, before Django reads its settings.

The server's database is migrated already (``tests/prepared_postgres.py``); each worker's own is a copy of it.
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

import psycopg
import pytest

from launcher.postgres import NoCompatiblePostgres, PostgresFailed
from tests.prepared_postgres import start_prepared

_GIVEN = "NINEFOLD_TEST_DATABASE_URL"
_USED = "NINEFOLD_DATABASE_URL"
_TEMPLATE = "NINEFOLD_TEST_DATABASE_TEMPLATE"
_HOME = "NINEFOLD_HOME"


# A wrapper runs before every plain hook, so before pytest-django reads the settings in its own.
@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None]:
    if "PYTEST_XDIST_WORKER" not in os.environ:
        given = os.environ.get(_GIVEN)
        os.environ[_USED] = given or _start(early_config)
        if not given:
            os.environ[_TEMPLATE] = _create_template(os.environ[_USED])
        home = _temporary("ninefold-home-", early_config)
        (home / "static").mkdir()
        os.environ[_HOME] = str(home)
    return (yield)


def _create_template(url: str) -> str:
    """A copy of the migrated database to which nobody can connect: one with a connection cannot be copied."""
    name = "ninefold_template"
    with psycopg.connect(url, dbname="postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE ninefold ALLOW_CONNECTIONS false")
    return name


def _temporary(prefix: str, config: pytest.Config) -> Path:
    """A folder that goes with the run."""
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
    return folder


def _start(config: pytest.Config) -> str:
    folder = _temporary("ninefold-pg-", config)
    try:
        running = start_prepared(folder)
    except (PostgresFailed, NoCompatiblePostgres) as error:
        raise pytest.UsageError(
            f"no PostgreSQL for the tests: {error}\nor name one: {_GIVEN}=postgresql://…"
        ) from error
    config.add_cleanup(running.stop)
    return running.url
