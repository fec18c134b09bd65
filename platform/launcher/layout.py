"""Where the product keeps its files on one machine, and who may pass through.

Jobs run under accounts of their own where the product runs as root. They pass through the home to
their own folder and to the engines; everything else is closed to them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

#: Folder below the home → its mode. ``pg`` is given to PostgreSQL's account by whoever starts it.
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
class Layout:
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
        """The file that says where the embedded database listens."""
        return self.run / "database-url"

    @property
    def agent_token(self) -> Path:
        """By which this machine's agent speaks for its node."""
        return self.secrets / "agent_token"

    @property
    def supervisor_log(self) -> Path:
        return self.logs / "supervisor.log"

    def create(self) -> None:
        """Make every folder, with its mode. A home that a person made keeps the mode it has."""
        if not self.home.exists():
            self.home.mkdir(parents=True)
            self.home.chmod(_HOME_MODE)
        for name, mode in MODES.items():
            folder = self.home / name
            folder.mkdir(exist_ok=True)
            folder.chmod(mode)
