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
    """The environment cannot be made; the message says what to do about it."""


def wanted(*, project: Path, extent: str) -> dict[str, str]:
    """What the record says once the environment holds ``extent``: every input, by its digest."""
    return {
        "extent": extent,
        # Scripts in an environment name its folder, so a moved one is as good as none.
        "folder": str(project),
        "python": platform.python_version(),
        "lock": _digest(project / LOCKS[extent]),
        "project": _digest(project / "pyproject.toml"),
        "uv": _digest(project / UV_LOCK),
    }


def recorded(environment: Path) -> dict[str, str]:
    """What was last installed, empty if nothing was, or if the interpreter is gone."""
    if not (environment / "bin" / "python").exists():
        return {}
    try:
        found = json.loads((environment / _RECORD).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def extent_to_install(*, project: Path, environment: Path, asked: str) -> str | None:
    """What has to be installed for ``asked``; None if nothing has.

    An environment that once held the developers' packages keeps them.
    """
    have = recorded(environment)
    extent = DEVELOPMENT if have.get("extent") == DEVELOPMENT else asked
    return None if have == wanted(project=project, extent=extent) else extent


def ensure(*, project: Path, asked: str) -> bool:
    """Bring ``<project>/.venv`` to what is asked for, one caller at a time.

    :returns: whether anything had to be done.
    :raises BootstrapFailed: if this Python lacks what it takes, or an installer failed.
    """
    environment = project / ".venv"
    if extent_to_install(project=project, environment=environment, asked=asked) is None:
        return False
    environment.mkdir(exist_ok=True)
    with (environment / _MUTEX).open("w") as mutex:
        try:
            fcntl.flock(mutex, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _say("another set-up of this environment is running; waiting for it")
            fcntl.flock(mutex, fcntl.LOCK_EX)
        extent = extent_to_install(project=project, environment=environment, asked=asked)
        if extent is None:
            return False
        _install(project=project, environment=environment, extent=extent)
    return True


def _install(*, project: Path, environment: Path, extent: str) -> None:
    began = time.monotonic()
    have = recorded(environment)
    goal = wanted(project=project, extent=extent)
    with contextlib.suppress(FileNotFoundError):
        (environment / _RECORD).unlink()
    python = environment / "bin" / "python"
    if not _stands(environment, have=have, goal=goal):
        _create(environment)
    if have.get("uv") != goal["uv"] or not (environment / "bin" / "uv").exists():
        _say("installing uv, the installer")
        _run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
              "--require-hashes", "--requirement", project / UV_LOCK])  # fmt: skip
    uv = environment / "bin" / "uv"
    _create_uv_lock(environment)
    _say(f"installing the packages of {LOCKS[extent]}")
    _run([uv, "pip", "sync", "--quiet", "--python", python, "--require-hashes",
          project / LOCKS[extent]])  # fmt: skip
    _run([uv, "pip", "install", "--quiet", "--python", python, "--no-deps",
          "--no-build-isolation", "--editable", project])  # fmt: skip
    draft = environment / (_RECORD + ".new")
    draft.write_text(json.dumps(goal, indent=2) + "\n", encoding="utf-8")
    draft.replace(environment / _RECORD)
    _say(f"the environment is ready after {time.monotonic() - began:.1f} s")


def _create_uv_lock(environment: Path) -> None:
    """uv creates its lock file with mode 0666 whatever the umask, and keeps the mode of an existing one."""
    lock = environment / ".lock"
    lock.touch()
    lock.chmod(0o644)


def _stands(environment: Path, *, have: dict[str, str], goal: dict[str, str]) -> bool:
    """Whether the environment is one that packages can be put into as it is."""
    if have:
        return have.get("folder") == goal["folder"] and have.get("python") == goal["python"]
    # Without a record: one that a person made, or whose last set-up was interrupted.
    try:
        settings = (environment / "pyvenv.cfg").read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return False
    same = f"version = {goal['python']}" in settings
    return same and all((environment / "bin" / name).exists() for name in ("python", "pip"))


def _create(environment: Path) -> None:
    _require_venv()
    _say(f"creating {environment} with Python {platform.python_version()}")
    for entry in environment.iterdir():
        if entry.name == _MUTEX:
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()
    _run([sys.executable, "-m", "venv", environment])


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


def _run(command: list[str | Path]) -> None:
    # What a caller's environment says about another one must not reach the installers.
    hidden = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PIP_TARGET", "PIP_PREFIX", "PIP_USER")
    environ = {name: value for name, value in os.environ.items() if name not in hidden}
    # A company's own certificates, as pip was told of them, are good for uv too.
    if "PIP_CERT" in environ:
        environ.setdefault("SSL_CERT_FILE", environ["PIP_CERT"])
    words = [str(word) for word in command]
    if subprocess.run(words, env=environ, stdin=subprocess.DEVNULL, check=False).returncode != 0:
        raise BootstrapFailed(f"this command failed; its own message is above: {' '.join(words)}")


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _say(text: str) -> None:
    print(f"set-up: {text}", flush=True)


def another_python() -> str | None:
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
        other = another_python()
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
        ensure(
            project=Path(__file__).resolve().parents[2],
            asked=DEVELOPMENT if options.dev else PRODUCT,
        )
    except BootstrapFailed as error:
        print(f"set-up: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
