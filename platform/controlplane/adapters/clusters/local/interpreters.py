"""Which Python runs jobs: one that the job's account can execute."""

from __future__ import annotations

import os
import shutil
import stat
import sys
from pathlib import Path

#: The version that engines are built for.
VERSION = "3.11"


class NoInterpreter(Exception):
    """No Python was found that jobs could run on."""


def open_to_others(path: Path) -> bool:
    """Whether every folder down to ``path`` lets any account pass."""
    resolved = path.resolve()
    return all(folder.stat().st_mode & stat.S_IXOTH for folder in (resolved, *resolved.parents))


def closed_folder(path: Path) -> Path | None:
    """The topmost folder above or at ``path`` that lets no other account pass, if there is one."""
    resolved = path.resolve()
    for folder in (*reversed(resolved.parents), resolved):
        if not folder.stat().st_mode & stat.S_IXOTH:
            return folder
    return None


def find(*, preferred: str = "", by_others: bool) -> Path:
    """The resolved path of an interpreter; ``by_others`` asks for one that any account can execute.

    :raises NoInterpreter: if there is none; the message says what to install.
    """
    if preferred:
        path = shutil.which(preferred)
        if path is None:
            raise NoInterpreter(f"{preferred!r} is not an executable Python")
        if by_others and not open_to_others(Path(path)):
            raise NoInterpreter(
                f"{preferred!r} lies under {closed_folder(Path(path))}, which a job's account cannot "
                f"enter; name a Python outside it, for example /usr/bin/python{VERSION}"
            )
        return Path(path).resolve()
    for candidate in _candidates():
        executable = candidate.is_file() and os.access(candidate, os.X_OK)
        if executable and (not by_others or open_to_others(candidate)):
            return candidate.resolve()
    raise NoInterpreter(
        f"no Python {VERSION} was found that a job's account can execute; install the package "
        f"python{VERSION}, or set NINEFOLD_LOCAL_PYTHON to one outside private folders"
    )


def _candidates() -> list[Path]:
    name = f"python{VERSION}"
    own = Path(sys.base_prefix) / "bin" / name
    folders = [*os.get_exec_path(), "/usr/local/bin", "/usr/bin"]
    # A version manager's shim is a script that finds its versions by the user's own settings.
    usual = [Path(folder) / name for folder in folders if "shims" not in Path(folder).parts]
    return [own, *usual]
