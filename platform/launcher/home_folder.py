"""One home: folders with their permissions, generated secrets, the lock, and the record of what runs.

Jobs run under accounts of their own where the product runs as root. They may traverse the home to their own
folder and to the engines; everything else is closed to them.

The home's lock decides *whether* a supervisor runs: the kernel releases it with the process. The run record lists
*what* runs, and after a killed supervisor it lists what may be left.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any

from process_supervision.files import try_lock, write_private
from process_supervision.processes import ProcessIdentity

#: Folder below the home → its mode. ``pg`` is owned by the account of PostgreSQL.
MODES: Mapping[str, int] = MappingProxyType(
    {
        "artifacts": 0o700,
        "bench": 0o755,
        "broker": 0o700,
        "datasets": 0o700,
        "engines": 0o755,
        "jobs": 0o711,
        "logs": 0o700,
        "run": 0o700,
        "secrets": 0o700,
        "static": 0o755,
        "tmp": 0o700,
    }
)
_HOME_MODE = 0o711


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeLayout:
    """Paths below one home, which is absolute and free of symbolic links."""

    home: Path

    @property
    def postgres(self) -> Path:
        return self.home / "pg"

    @property
    def logs(self) -> Path:
        return self.home / "logs"

    @property
    def run(self) -> Path:
        return self.home / "run"

    @property
    def secrets(self) -> Path:
        return self.home / "secrets"

    @property
    def temporary(self) -> Path:
        return self.home / "tmp"

    @property
    def database_url(self) -> Path:
        """The file with the URL of the embedded database."""
        return self.run / "database-url"

    @property
    def agent_token(self) -> Path:
        """The token of the agent of this machine."""
        return self.secrets / "agent_token"

    @property
    def supervisor_log(self) -> Path:
        return self.logs / "supervisor.log"

    def create(self) -> None:
        """Create every folder with its mode. An existing home keeps its mode."""
        if not self.home.exists():
            self.home.mkdir(parents=True)
            self.home.chmod(_HOME_MODE)
        for name, mode in MODES.items():
            folder = self.home / name
            folder.mkdir(exist_ok=True)
            folder.chmod(mode)


ADMIN_PASSWORD = "admin_password"  # noqa: S105 - a file's name


def _fernet_key() -> str:
    return base64.urlsafe_b64encode(secrets.token_bytes(32)).decode("ascii")


_GENERATORS: Mapping[str, Callable[[], str]] = MappingProxyType(
    {
        "secret_key": lambda: secrets.token_urlsafe(48),
        "encryption_key": _fernet_key,
        "gateway_token": lambda: secrets.token_urlsafe(32),
        "metrics_token": lambda: secrets.token_urlsafe(32),
        ADMIN_PASSWORD: lambda: secrets.token_urlsafe(12),
    }
)


def generate_missing_secrets(folder: Path) -> frozenset[str]:
    """Write each secret that is not there yet, mode 0600.

    :returns: the names of those written now.
    """
    generated = set()
    for name, generate in _GENERATORS.items():
        path = folder / name
        if not path.exists():
            write_private(path, f"{generate()}\n")
            generated.add(name)
    return frozenset(generated)


class SupervisorPhase(StrEnum):
    STARTING = "starting"
    READY = "ready"
    STOPPING = "stopping"


class AlreadyRunning(RuntimeError):
    """Another supervisor, or a command that stops one, has the lock of this home."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessEntry:
    """One supervised process. ``pid`` is that of its guard, 0 while it waits for a restart."""

    name: str
    pid: int
    ticks: int
    restarts: int
    since: str

    def is_running(self) -> bool:
        return ProcessIdentity(pid=self.pid, started=self.ticks).alive()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    pid: int
    ticks: int
    phase: SupervisorPhase
    since: datetime
    web_url: str
    gateway_url: str
    processes: tuple[ProcessEntry, ...]

    @property
    def supervisor(self) -> ProcessIdentity:
        return ProcessIdentity(pid=self.pid, started=self.ticks)


def write_run_record(layout: HomeLayout, record: RunRecord) -> None:
    content: dict[str, Any] = {**asdict(record), "since": record.since.isoformat()}
    write_private(layout.run / "supervisor.json", json.dumps(content, indent=2) + "\n")


def read_run_record(layout: HomeLayout) -> RunRecord | None:
    """The last record, of a running supervisor or a killed one; None if it left properly."""
    try:
        content = json.loads((layout.run / "supervisor.json").read_text())
        processes = tuple(ProcessEntry(**entry) for entry in content.pop("processes"))
        return RunRecord(
            **{
                **content,
                "since": datetime.fromisoformat(content["since"]),
                "phase": SupervisorPhase(content["phase"]),
                "processes": processes,
            }
        )
    except (FileNotFoundError, ValueError, TypeError, KeyError):
        return None


def remove_run_record(layout: HomeLayout) -> None:
    (layout.run / "supervisor.json").unlink(missing_ok=True)


@contextlib.contextmanager
def lock_home(layout: HomeLayout) -> Iterator[None]:
    """Hold the exclusive lock for starting and stopping the product in this home.

    :raises AlreadyRunning: if another process is.
    """
    lock = try_lock(layout.run / "supervisor.lock")
    if lock is None:
        raise AlreadyRunning(f"the product in {layout.home} is already running")
    try:
        yield
    finally:
        os.close(lock)
