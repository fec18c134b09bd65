"""A database of its own with the product's tables, and programs that work on it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.prepared_postgres import start_temporary_postgres

ROOT = Path(__file__).resolve().parents[3]
#: Sets Django up before the module is read, as models need it.
_RUN = "import django, runpy, sys; django.setup(); sys.argv = sys.argv[1:]; "
_RUN += "runpy.run_module(sys.argv[0], run_name='__main__')"


@contextmanager
def product_database() -> Iterator[Mapping[str, str]]:
    """The environment of programs that work on it; it goes with everything in it."""
    folder = Path(tempfile.mkdtemp(prefix="ninefold-bench-"))
    folder.chmod(0o755)
    try:
        with start_temporary_postgres(folder / "postgres") as server:
            environment = _environment(folder, database=server.url)
            _migrate(environment)
            yield environment
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def program(module: str, *arguments: str) -> list[str]:
    """The command that runs the module with Django set up."""
    return [sys.executable, "-W", "ignore", "-c", _RUN, module, *arguments]


def ran(module: str, *arguments: str, environment: Mapping[str, str]) -> str:
    """What the program printed.

    :raises subprocess.CalledProcessError: if it failed; its complaints are on the screen.
    """
    done = subprocess.run(
        program(module, *arguments),
        cwd=ROOT,
        env=dict(environment),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout


def _environment(folder: Path, *, database: str) -> dict[str, str]:
    home = folder / "home"
    (home / "static").mkdir(parents=True)
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("NINEFOLD_", "DJANGO_", "PYTEST_"))
    }
    return {
        **inherited,
        "DJANGO_SETTINGS_MODULE": "config.settings.test",
        "PYTHONPATH": f"{ROOT}:{ROOT / 'platform'}",
        "NINEFOLD_DATABASE_URL": database,
        "NINEFOLD_HOME": str(home),
        "NINEFOLD_LOG_LEVEL": "WARNING",
    }


def _migrate(environment: Mapping[str, str]) -> None:
    command = [sys.executable, "-W", "ignore", "manage.py", "migrate", "--noinput", "-v", "0"]
    subprocess.run(command, cwd=ROOT, env=dict(environment), check=True)
