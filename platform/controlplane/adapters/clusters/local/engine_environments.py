"""Engine environments and copies of the runtime package, shared by all jobs.

An environment is created on first use, one folder for each lock. A virtual environment cannot be moved, so it
is built in place: ``.complete`` is written last, and what lacks it is wiped. The installer inherits the lock,
so that an installer that outlives a killed supervisor keeps others out of the folder that it still writes to.

``python -m controlplane.adapters.clusters.local.engine_environments ENGINE [--home var]`` creates one
ahead of time.

The runtime package is copied to ``<home>/engines/runtime-<digest>/ninefold_runtime``, one copy for each content
and never changed, where jobs can import it without reading the control plane's source.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import secrets
import select
import shutil
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from controlplane.adapters.clusters.launch_validation import RUNTIME_PACKAGE, runtime_source
from controlplane.adapters.clusters.local import job_accounts
from controlplane.adapters.clusters.local.launch_folders import LocalClusterFolder
from controlplane.domain.common.reasons import ReasonedError
from controlplane.domain.common.resources import GIB, MIB, format_bytes
from controlplane.ports.launches import EngineEnvironment
from process_supervision.files import try_lock
from process_supervision.process_guard import set_parent_death_signal
from process_supervision.processes import OutputPipe, start_in_session

#: Called with a sentence whenever there is news, and without at least five times a second;
#: what it raises ends the work.
ReportProgress = Callable[[str | None], None]

_MIN_DISK_WITH_PREINSTALL = 3 * GIB
_MIN_DISK = 64 * MIB
_LAST_LINES = 12


class EnvironmentBuildFailed(ReasonedError):
    """The environment could not be created; the message ends with the installer's last lines."""


def ensure_environment(
    environment: EngineEnvironment, *, engines: Path, python: Path, report: ReportProgress
) -> Path:
    """The path of the environment's own ``python``; created first if needed.

    :raises EnvironmentBuildFailed: if there is no room, no installer, or an installation fails.
    """
    folder = engines / environment.name
    interpreter = folder / "bin" / "python"
    if _is_complete(folder):
        return interpreter
    lock = _acquire_lock(
        engines / f".{environment.name}.lock", name=environment.name, report=report
    )
    try:
        if not _is_complete(folder):
            _check_disk_space(environment, engines=engines)
            shutil.rmtree(folder, ignore_errors=True)
            _EnvironmentBuilder(environment, folder=folder, lock=lock, report=report).build(python)
            (folder / ".complete").touch()
    finally:
        os.close(lock)
    return interpreter


def _is_complete(folder: Path) -> bool:
    # The interpreter it was created from may have been uninstalled since.
    return (folder / ".complete").exists() and (folder / "bin" / "python").exists()


def _acquire_lock(path: Path, *, name: str, report: ReportProgress) -> int:
    lock, reported = try_lock(path), False
    while lock is None:
        report(
            None if reported else f"waiting: the environment {name} is being made for another job"
        )
        reported = True
        time.sleep(0.2)
        lock = try_lock(path)
    return lock


def _check_disk_space(environment: EngineEnvironment, *, engines: Path) -> None:
    needed = _MIN_DISK_WITH_PREINSTALL if environment.preinstall else _MIN_DISK
    free = shutil.disk_usage(engines).free
    if free < needed:
        raise EnvironmentBuildFailed(
            "launch.environment.disk_full",
            "the environment {environment} requires {needed} of disk space, but "
            "{free} are free in {folder}",
            environment=environment.name,
            needed=format_bytes(needed),
            free=format_bytes(free),
            folder=str(engines),
        )


class _EnvironmentBuilder:
    """One build of one environment, under its lock."""

    def __init__(
        self, environment: EngineEnvironment, *, folder: Path, lock: int, report: ReportProgress
    ) -> None:
        self._environment = environment
        self._folder = folder
        self._lock = lock
        self._report = report
        self._variables = uv_variables(os.environ)
        self._last_lines: deque[str] = deque(maxlen=_LAST_LINES)

    def build(self, python: Path) -> None:
        self._report(f"making the environment {self._environment.name}")
        uv = self._create_venv(python)
        # Jobs have accounts that may not write here: each would compile what it imports at every start.
        python_path = str(self._folder / "bin" / "python")
        install = [*uv, "pip", "install", "--compile-bytecode", "--python", python_path]
        if self._environment.preinstall:
            what = " ".join(self._environment.preinstall)
            self._run_command(
                [*install, *self._environment.preinstall], saying=lambda: f"installing {what}"
            )
        requirements = self._folder / "requirements.lock"
        requirements.write_text(self._environment.lock, encoding="utf-8")
        count = len(re.findall(r"^[A-Za-z0-9]", self._environment.lock, re.MULTILINE))
        if count:
            before = self._installed_package_count()
            self._run_command(
                [*install, "--no-deps", "--require-hashes", "-r", str(requirements)],
                saying=lambda: (
                    f"installing {count} packages: {self._installed_package_count() - before} done"
                ),
            )
        self._make_world_readable()

    def _create_venv(self, python: Path) -> list[str]:
        """Create the virtual environment; returns the command of a ``uv`` that can fill it."""
        beside = Path(sys.executable).with_name("uv")
        uv = str(beside) if beside.is_file() else shutil.which("uv")
        folder = str(self._folder)
        if uv is not None:
            self._run_command([uv, "venv", "--quiet", "--python", str(python), folder])
            return [uv]
        self._run_command([str(python), "-m", "venv", folder])
        self._run_command(
            [f"{folder}/bin/python", "-m", "pip", "install", "--quiet", "uv"],
            saying=lambda: "installing uv",
        )
        return [f"{folder}/bin/uv"]

    def _installed_package_count(self) -> int:
        return sum(1 for _ in self._folder.glob("lib/python3*/site-packages/*.dist-info"))

    def _run_command(
        self, command: Sequence[str], *, saying: Callable[[], str] | None = None
    ) -> None:
        process = start_in_session(
            command,
            before_exec=partial(set_parent_death_signal, parent=os.getpid(), by=signal.SIGKILL),
            env=self._variables,
            umask=0o022,
            pass_fds=(self._lock,),
        )
        output = OutputPipe(process)
        try:
            self._report_process_output(output, saying=saying)
        finally:
            if process.poll() is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            code = process.wait()
            output.close()
        if code != 0:
            step = saying() if saying else "making the virtual environment"
            raise EnvironmentBuildFailed(
                f"{step} failed with exit code {code}:\n" + "\n".join(self._last_lines)
            )

    def _report_process_output(
        self, output: OutputPipe, *, saying: Callable[[], str] | None
    ) -> None:
        last_message = ""
        while not output.at_end:
            message = saying() if saying else ""
            self._report(message if message != last_message else None)
            last_message = message
            if select.select([output], [], [], 0.2)[0]:
                self._last_lines.extend(line for line in output.lines() if line.strip())

    def _make_world_readable(self) -> None:
        """Files linked from a cache keep its modes, maybe private; uv leaves its lock world-writable."""
        for parent, folders, files in os.walk(self._folder):
            for name in (*folders, *files):
                path = Path(parent, name)
                if path.is_symlink():
                    continue
                mode = path.stat().st_mode
                wanted = (mode | 0o444 | (0o111 if mode & 0o100 else 0)) & ~0o022
                if wanted != mode:
                    path.chmod(wanted)
        self._folder.chmod(0o755)


def main(arguments: Sequence[str] | None = None) -> int:
    # Only this command needs the registry of adapters; a supervisor that imports this module does not.
    from controlplane.ports import adapter_registry  # noqa: PLC0415

    parser = argparse.ArgumentParser(
        description="Make an engine's environment ahead of its first job."
    )
    parser.add_argument("engine", help="name of an installed engine, for example transformers")
    parser.add_argument("--home", type=Path, default=os.environ.get("NINEFOLD_HOME", "var"))
    parser.add_argument("--python", default=os.environ.get("NINEFOLD_LOCAL_PYTHON", ""))
    options = parser.parse_args(arguments)
    home = LocalClusterFolder(Path(options.home).absolute())
    home.create()

    def report(message: str | None) -> None:
        if message:
            sys.stdout.write(f"{message}\n")
            sys.stdout.flush()

    try:
        environment = adapter_registry.engine_by_name(options.engine).environment()
        python = job_accounts.find_interpreter(
            preferred=options.python, by_others=job_accounts.can_use_job_accounts()
        )
        if environment is None:
            raise EnvironmentBuildFailed(
                "launch.environment.image_only",
                "{engine} is available as an image only; there is nothing to install",
                engine=options.engine,
            )
        created = ensure_environment(
            environment, engines=home.engines, python=python, report=report
        )
    except (
        adapter_registry.AdapterNotFound,
        EnvironmentBuildFailed,
        job_accounts.InterpreterNotFound,
    ) as failure:
        sys.stderr.write(f"{failure}\n")
        return 1
    report(f"ready: {created}")
    return 0


_PASSED_ON = re.compile(
    r"(PIP_.+|UV_.+|(https?|all|no)_proxy|SSL_CERT_(FILE|DIR)|REQUESTS_CA_BUNDLE|XDG_CACHE_HOME"
    r"|HOME|PATH|LANG|TMPDIR|NINEFOLD_FIND_LINKS|NINEFOLD_LAUNCH)",
    re.IGNORECASE,
)


def installer_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Those variables that a supervisor is started with: it runs installers, and jobs never see them."""
    return {name: value for name, value in environment.items() if _PASSED_ON.fullmatch(name)}


def uv_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """The whole environment of ``uv``."""
    variables = installer_variables(environment)
    links = environment.get("NINEFOLD_FIND_LINKS") or environment.get("PIP_FIND_LINKS")
    # uv reads none of pip's variables: what was set for pip is meant for it too.
    for own, theirs in (
        ("UV_FIND_LINKS", links),
        ("UV_DEFAULT_INDEX", environment.get("PIP_INDEX_URL")),
        ("SSL_CERT_FILE", environment.get("PIP_CERT")),
    ):
        if theirs:
            variables.setdefault(own, theirs)
    return variables | {"UV_NO_PROGRESS": "1", "UV_PYTHON_DOWNLOADS": "never", "NO_COLOR": "1"}


def ensure_runtime_package(*, engines: Path) -> Path:
    """The folder to put on ``PYTHONPATH``; copied there first if need be.

    :raises OSError: if there is no room for the copy; nothing partial stays behind.
    """
    source = runtime_source()
    files = sorted(
        path
        for path in source.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".pyc"
    )
    digest = hashlib.sha256()
    for path in files:
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        digest.update(f"{path.relative_to(source)}\0{content}\n".encode())
    copy = engines / f"runtime-{digest.hexdigest()[:16]}"
    if not copy.is_dir():
        _copy_files(files, source=source, destination=copy)
    return copy


def _copy_files(files: list[Path], *, source: Path, destination: Path) -> None:
    staging = destination.with_name(f".{destination.name}.{secrets.token_hex(4)}")
    try:
        for path in files:
            target = staging / RUNTIME_PACKAGE / path.relative_to(source)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
            target.chmod(0o644)
        for folder in (staging, *staging.rglob("*/")):
            folder.chmod(0o755)
        staging.rename(destination)
    except OSError:
        # Another replica may have been first: its copy has the same content.
        shutil.rmtree(staging, ignore_errors=True)
        if not destination.is_dir():
            raise


if __name__ == "__main__":
    sys.exit(main())
