"""Makes the virtual environment that all else runs in, or finds in no time that it stands.

Run by the system's own Python with nothing installed (``python3 -I …/bootstrap.py``): the standard
library only, and a syntax that an old Python can read far enough to be told it is too old.

Packages come from the lock files with their hashes checked. pip, with the user's own settings,
brings only ``uv``, which installs the rest in seconds.

What was installed is recorded in ``.venv/.ninefold-lock``. The developers' lock contains the
product's, so an environment with it serves both.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from pathlib import Path

OLDEST_PYTHON = (3, 11)
NEWEST_PYTHON = (3, 13)
PRODUCT = "product"
DEVELOPMENT = "development"
LOCKS = {PRODUCT: "requirements.lock", DEVELOPMENT: "requirements-dev.lock"}
UV_LOCK = Path("platform/launcher/requirements-uv.lock")

_RECORD = ".ninefold-lock"
_MUTEX = ".ninefold-bootstrap"


class BootstrapFailed(Exception):
    """The environment cannot be created; the message says what to do."""


def expected_record(*, project: Path, extent: str) -> dict[str, str]:
    """Return the record of an environment with ``extent``: the digest of every input."""
    return {
        "extent": extent,
        # Scripts in an environment name its folder, so a moved one is as good as none.
        "folder": str(project),
        "python": platform.python_version(),
        "lock": _file_digest(project / LOCKS[extent]),
        "project": "".join(
            _file_digest(package / "pyproject.toml")
            for package in _editable_packages(project=project, extent=extent)
        ),
        "uv": _file_digest(project / UV_LOCK),
    }


def _editable_packages(*, project: Path, extent: str) -> list[Path]:
    """Return the folders of the packages that are installed as they are; the client is one for developers."""
    client = project / "client"
    has_client = extent == DEVELOPMENT and (client / "pyproject.toml").exists()
    return [project, client] if has_client else [project]


def stored_installation_record(environment: Path) -> dict[str, str]:
    """Return the record of the last installation; empty if there is none or the interpreter is missing."""
    if not (environment / "bin" / "python").exists():
        return {}
    try:
        found = json.loads((environment / _RECORD).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def packages_to_install(*, project: Path, environment: Path, requested: str) -> str | None:
    """Return what has to be installed for ``requested``; None if nothing.

    An environment with development packages keeps them.
    """
    installed = stored_installation_record(environment)
    extent = DEVELOPMENT if installed.get("extent") == DEVELOPMENT else requested
    return None if installed == expected_record(project=project, extent=extent) else extent


def ensure_environment(*, project: Path, requested: str) -> bool:
    """Install ``requested`` into ``<project>/.venv``, one caller at a time.

    :returns: whether anything had to be done.
    :raises BootstrapFailed: if this Python lacks a module, or an installer failed.
    """
    environment = project / ".venv"
    if packages_to_install(project=project, environment=environment, requested=requested) is None:
        return False
    environment.mkdir(exist_ok=True)
    with (environment / _MUTEX).open("w") as mutex:
        try:
            fcntl.flock(mutex, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _print_progress("another set-up of this environment is running; waiting for it")
            fcntl.flock(mutex, fcntl.LOCK_EX)
        extent = packages_to_install(project=project, environment=environment, requested=requested)
        if extent is None:
            return False
        _install_packages(project=project, environment=environment, extent=extent)
    return True


def _install_packages(*, project: Path, environment: Path, extent: str) -> None:
    began = time.monotonic()
    installed = stored_installation_record(environment)
    goal = expected_record(project=project, extent=extent)
    with contextlib.suppress(FileNotFoundError):
        (environment / _RECORD).unlink()
    python = environment / "bin" / "python"
    if not _is_environment_reusable(environment, installed=installed, goal=goal):
        _create_venv(environment)
    if installed.get("uv") != goal["uv"] or not (environment / "bin" / "uv").exists():
        _print_progress("installing uv, the installer")
        _run_quietly([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
              "--require-hashes", "--requirement", project / UV_LOCK])  # fmt: skip
    uv = environment / "bin" / "uv"
    _create_uv_lock(environment)
    _print_progress(f"installing the packages of {LOCKS[extent]}")
    _run_quietly([uv, "pip", "sync", "--quiet", "--python", python, "--require-hashes",
          project / LOCKS[extent]])  # fmt: skip
    for package in _editable_packages(project=project, extent=extent):
        _run_quietly([uv, "pip", "install", "--quiet", "--python", python, "--no-deps",
              "--no-build-isolation", "--editable", package])  # fmt: skip
    draft = environment / (_RECORD + ".new")
    draft.write_text(json.dumps(goal, indent=2) + "\n", encoding="utf-8")
    draft.replace(environment / _RECORD)
    _print_progress(f"the environment is ready after {time.monotonic() - began:.1f} s")


def _create_uv_lock(environment: Path) -> None:
    """uv creates its lock file with mode 0666 whatever the umask, and keeps the mode of an existing one."""
    lock = environment / ".lock"
    lock.touch()
    lock.chmod(0o644)


def _is_environment_reusable(
    environment: Path, *, installed: dict[str, str], goal: dict[str, str]
) -> bool:
    """Whether the environment is one that packages can be put into as it is."""
    if installed:
        return (
            installed.get("folder") == goal["folder"] and installed.get("python") == goal["python"]
        )
    # Without a record: created by hand, or the last set-up was interrupted.
    try:
        settings = (environment / "pyvenv.cfg").read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return False
    same = f"version = {goal['python']}" in settings
    return same and all((environment / "bin" / name).exists() for name in ("python", "pip"))


def _create_venv(environment: Path) -> None:
    _require_venv()
    _print_progress(f"creating {environment} with Python {platform.python_version()}")
    for entry in environment.iterdir():
        if entry.name == _MUTEX:
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()
    _run_quietly([sys.executable, "-m", "venv", environment])


def _require_venv() -> None:
    try:
        __import__("ensurepip")
        __import__("venv")
    except ImportError as error:
        version = f"{sys.version_info[0]}.{sys.version_info[1]}"
        raise BootstrapFailed(
            f"this Python ({sys.executable}) cannot create virtual environments: it lacks "
            f"{error.name}. Install it (Debian: apt-get install python{version}-venv) and try again"
        ) from error


def _run_quietly(command: list[str | Path]) -> None:
    # Variables about another environment must not reach the installers.
    hidden = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PIP_TARGET", "PIP_PREFIX", "PIP_USER")
    environ = {name: value for name, value in os.environ.items() if name not in hidden}
    # The CA certificates configured for pip are used for uv as well.
    if "PIP_CERT" in environ:
        environ.setdefault("SSL_CERT_FILE", environ["PIP_CERT"])
    arguments = [str(argument) for argument in command]
    if (
        subprocess.run(arguments, env=environ, stdin=subprocess.DEVNULL, check=False).returncode
        != 0
    ):
        raise BootstrapFailed(
            f"this command failed; its own message is above: {' '.join(arguments)}"
        )


def _file_digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _print_progress(text: str) -> None:
    print(f"set-up: {text}", flush=True)


def find_newer_python() -> str | None:
    """The path of a Python on this machine that is new enough, newest first."""
    for minor in range(NEWEST_PYTHON[1], OLDEST_PYTHON[1] - 1, -1):
        found = shutil.which(f"python3.{minor}")
        if found:
            return found
    return None


def main() -> int:
    parser = argparse.ArgumentParser(prog="bootstrap", description="Create or update .venv.")
    parser.add_argument("--dev", action="store_true", help="with the tools for tests and checks")
    options = parser.parse_args()
    if not OLDEST_PYTHON <= sys.version_info[:2] <= NEWEST_PYTHON:
        other = find_newer_python()
        if other:
            os.execv(other, [other, "-I", str(Path(__file__).absolute()), *sys.argv[1:]])
        print(
            "set-up: Ninefold needs Python 3.11, 3.12 or 3.13, and this is "
            + f"{platform.python_version()} ({sys.executable}). Install one (Debian 12: "
            + "apt-get install python3 python3-venv) and name it: make PYTHON=python3.11 …",
            file=sys.stderr,
        )
        return 1
    # Root's own mask may be closed, and the database's account runs programs of this environment.
    os.umask(0o022)
    try:
        ensure_environment(
            project=Path(__file__).resolve().parents[2],
            requested=DEVELOPMENT if options.dev else PRODUCT,
        )
    except BootstrapFailed as error:
        print(f"set-up: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
