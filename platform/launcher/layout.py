"""Folders of one home with their permissions, and the secrets that the first start generates.

Jobs run under accounts of their own where the product runs as root. They may traverse the home to their own
folder and to the engines; everything else is closed to them.
"""

from __future__ import annotations

import base64
import os
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

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


def generate_missing(folder: Path) -> frozenset[str]:
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


def write_private(path: Path, text: str) -> None:
    """Replace a file in one step by one that only this account may read (0600)."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    draft.replace(path)
