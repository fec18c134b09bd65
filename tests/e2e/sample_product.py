"""The pages of a sample company on a port of their own: a database, rows, the web server, no engine.

Nothing works there: no worker, no scheduler, no gateway. So every state stays as it was made, and a page
can be looked at for as long as it takes.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from launcher.services import HttpProbe
from tests.e2e.product import ROOT, free_ports
from tests.e2e.waiting import wait_until
from tests.prepared_postgres import start_prepared

_SETTINGS = "tests.e2e.sample_settings"
_READY_WITHIN = 120.0
_PREPARED_WITHIN = 900.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleProduct:
    """Running pages, and the public names of what is on them (see ``tests/e2e/pages.py``)."""

    url: str
    names: Mapping[str, str]


class SampleFailed(RuntimeError):
    """A step of the preparation failed; the message holds what it printed."""


@contextmanager
def sample_product(*, collected: bool = False) -> Iterator[SampleProduct]:
    """Start it, and stop it afterwards. ``collected`` serves static files as the product does.

    :raises SampleFailed: if the rows cannot be made or the server does not start.
    """
    folder = Path(tempfile.mkdtemp(prefix="ninefold-sample-"))
    folder.chmod(0o755)
    try:
        with start_prepared(folder / "postgres") as server:
            (port,) = free_ports(1)
            environment = _environment(folder, database=server.url, port=port, collected=collected)
            if collected:
                arguments = ("manage.py", "collectstatic", "--noinput", "--verbosity", "0")
                _run(*arguments, environment=environment)
            names = folder / "names.json"
            _run("-m", "tests.e2e.demo", str(names), environment=environment)
            with _serving(folder, port=port, environment=environment) as url:
                yield SampleProduct(url=url, names=json.loads(names.read_text()))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def shared_sample_product() -> Iterator[SampleProduct]:
    """The sample product of this test run: the first pytest-xdist worker starts it, and it ends with the run.

    Tests of the pages share it, whichever worker they run on: what one of them changes must not matter to others.

    :raises SampleFailed: if it does not start.
    """
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID")
    if run is None:
        with sample_product(collected=True) as own:
            yield own
        return
    folder = Path(tempfile.gettempdir()) / f"ninefold-sample-{run}"
    folder.mkdir(exist_ok=True)
    ready = folder / "ready.json"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not ready.exists():
            _start_shared(folder)
    yield SampleProduct(**json.loads(ready.read_text()))


#: Servers of shared sample products; they end by themselves when the test run does.
_SERVERS: list[subprocess.Popen[bytes]] = []


def _start_shared(folder: Path) -> None:
    """A process that serves it for as long as the parent of this worker, the controller of the run, lives."""
    log = folder / "log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.e2e.sample_product", str(folder), str(os.getppid())],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'platform'}"},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    _SERVERS.append(process)
    wait_until(
        lambda: (folder / "ready.json").exists() or process.poll() is not None,
        bool,
        within=_PREPARED_WITHIN,
        what="the sample product",
        every=0.2,
    )
    if process.poll() is not None:
        raise SampleFailed(f"the sample product did not start:\n{log.read_text()}")


def main(folder: Path, *, owner: int) -> None:
    """Serve the sample product, described by ``ready.json`` in the folder, until the process ``owner`` ends."""
    with sample_product(collected=True) as running:
        staging = folder / "ready.json.new"
        staging.write_text(json.dumps({"url": running.url, "names": dict(running.names)}))
        staging.rename(folder / "ready.json")
        while psutil.pid_exists(owner):
            time.sleep(1)
    shutil.rmtree(folder, ignore_errors=True)


def _environment(folder: Path, *, database: str, port: int, collected: bool) -> dict[str, str]:
    home = folder / "home"
    for name in ("static", "tmp"):
        (home / name).mkdir(parents=True)
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("NINEFOLD_", "DJANGO_", "PYTEST_"))
    }
    return {
        **inherited,
        **({"NINEFOLD_SAMPLE_COLLECTED": "1"} if collected else {}),
        "DJANGO_SETTINGS_MODULE": _SETTINGS,
        "PYTHONPATH": f"{ROOT}:{ROOT / 'platform'}",
        "NINEFOLD_DATABASE_URL": database,
        "NINEFOLD_HOME": str(home),
        "NINEFOLD_WEB_PORT": str(port),
        "NINEFOLD_SECRET_KEY": "only-for-the-sample-company",
        "NINEFOLD_ENCRYPTION_KEY": "b25seS1mb3ItdGVzdHMtMzItYnl0ZXMtbG9uZy0hISE=",
        "NINEFOLD_GATEWAY_TOKEN": "only-for-the-sample-company",
        "NINEFOLD_LOG_LEVEL": "WARNING",
    }


def _run(*arguments: str, environment: Mapping[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", *arguments],
        cwd=ROOT,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_PREPARED_WITHIN,
        check=False,
    )
    if done.returncode:
        raise SampleFailed(f"{' '.join(arguments)} failed:\n{done.stdout}")


@contextmanager
def _serving(folder: Path, *, port: int, environment: Mapping[str, str]) -> Iterator[str]:
    url = f"http://127.0.0.1:{port}"
    log = folder / "web.log"
    with log.open("wb") as out:
        server = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "config.web_server"],
            cwd=ROOT,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    answers = HttpProbe(url=f"{url}/login")
    try:
        wait_until(
            lambda: answers() or server.poll() is not None,
            bool,
            within=_READY_WITHIN,
            what="the log-in page",
            every=0.1,
        )
        if server.poll() is not None:
            raise SampleFailed(f"the web server ended:\n{log.read_text()}")
        yield url
    finally:
        server.terminate()
        with suppress(subprocess.TimeoutExpired):
            server.wait(timeout=10)
        if server.poll() is None:
            server.kill()
            server.wait()
        _print_errors(log)


def _print_errors(log: Path) -> None:
    """What the server complained of, once it has gone."""
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if "[INFO]" not in line]
    if errors:
        print("\n".join(["the web server said:", *errors[-60:]]), file=sys.stderr)


if __name__ == "__main__":
    main(Path(sys.argv[1]), owner=int(sys.argv[2]))
