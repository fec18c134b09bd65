"""Temporary PostgreSQL servers, empty or with a database that is already migrated.

Creating a server and applying every migration takes longer than most test files. The data folder of a migrated
server is therefore kept in a cache folder, under a digest of all migrations and of what applies them, and copied.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from launcher.postgres import PostgresBinaries, RunningPostgres, prepare_server

ROOT = Path(__file__).resolve().parents[1]
_MIGRATED_WITHIN = 900.0


def start_temporary_postgres(
    directory: Path, *, candidates: Iterable[PostgresBinaries] | None = None
) -> RunningPostgres:
    """A server in ``directory``: quick, unsafe in a power cut, ends with its parent.

    :raises PostgresFailed: if it does not start.
    """
    server = prepare_server(folder=directory.resolve(), candidates=candidates, durable=False)
    return server.start(log=server.folder / "postgres.log")


def start_prepared(folder: Path) -> RunningPostgres:
    """A temporary server in ``folder``, as ``start_temporary_postgres`` starts it, with a migrated database.

    :raises PostgresFailed: if it does not start.
    """
    folder.mkdir(parents=True, exist_ok=True)
    copy_data(into=folder)
    return start_temporary_postgres(folder)


def copy_data(*, into: Path) -> None:
    """Copy the data folder of a migrated server to ``into/data``; it is made first where the cache has none."""
    cached = _cache() / _digest()
    # One lock for all: what another process copies from is not removed meanwhile.
    with _locked(_cache() / "lock"):
        if not cached.exists():
            _make(cached)
            _forget_older(keep=3)
        subprocess.run(("cp", "-a", cached, into / "data"), check=True)


def _make(cached: Path) -> None:
    staging = Path(tempfile.mkdtemp(prefix="ninefold-pg-"))
    staging.chmod(0o755)
    try:
        server = prepare_server(folder=staging / "server", durable=False)
        with server.start(log=staging / "postgres.log") as running:
            inherited = {
                name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")
            }
            subprocess.run(
                (sys.executable, "-W", "ignore", "manage.py", "migrate", "--verbosity", "0"),
                cwd=ROOT,
                env={
                    **inherited,
                    "DJANGO_SETTINGS_MODULE": "config.settings.test",
                    "PYTHONPATH": f"{ROOT}:{ROOT / 'platform'}",
                    "NINEFOLD_DATABASE_URL": running.url,
                    "NINEFOLD_HOME": str(staging / "home"),
                },
                stdin=subprocess.DEVNULL,
                check=True,
                timeout=_MIGRATED_WITHIN,
            )
        draft = cached.with_suffix(".new")
        shutil.rmtree(draft, ignore_errors=True)
        # A rename may not cross file systems, a copy may.
        subprocess.run(("cp", "-a", server.data, draft), check=True)
        draft.rename(cached)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _forget_older(*, keep: int) -> None:
    folders = sorted(
        (each for each in _cache().iterdir() if each.is_dir()),
        key=lambda each: each.stat().st_ctime,
    )
    for old in folders[:-keep]:
        shutil.rmtree(old, ignore_errors=True)


def _cache() -> Path:
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "ninefold" / "test-databases"


def _digest() -> str:
    """Of all that decides what a migrated database looks like, and who may read it."""
    digest = hashlib.sha256(f"{sys.version_info[:2]} {os.geteuid()}".encode())
    migrations = [*ROOT.glob("apps/*/migrations/*.py"), *ROOT.glob("platform/*/*/migrations/*.py")]
    settled = [
        ROOT / "requirements-dev.lock",
        ROOT / "platform" / "config" / "settings" / "base.py",
        ROOT / "platform" / "launcher" / "postgres.py",
        ROOT / "apps" / "quotas" / "services" / "priority_classes.py",
    ]
    for path in [*sorted(migrations), *settled, Path(__file__)]:
        digest.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """One process at a time makes what the cache lacks."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
