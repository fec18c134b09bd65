"""What containers run, without containers: each command of compose.yaml starts, answers its probe and ends."""

from __future__ import annotations

import base64
import json
import os
import re
import secrets
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest
import requests
import yaml
from psycopg import sql

from tests.contract.waiting import until
from tests.integration.broker.brokers import RedisBroker
from tests.integration.gateway.servers import free_port
from tests.unit.deployment.dockerfiles import stages
from tests.unit.deployment.kustomizations import ROOT

pytestmark = pytest.mark.product

DOCKER = ROOT / "docker"
HOME = "/var/lib/ninefold"
#: Of a machine that is busy with other tests.
WITHIN = 300.0
ENDS_WITHIN = 45.0
#: Below the home, what containers may write; the image brings the static files.
WRITABLE = {"artifacts", "run", "tmp", "static"}
STORES = frozenset({"NINEFOLD_DATABASE_URL", "NINEFOLD_BROKER_URL"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """Everything that stands around the containers."""

    home: Path
    ports: Mapping[str, str]
    #: By which ${…} in compose.yaml are filled in.
    values: Mapping[str, str]
    #: Of this machine, over what compose.yaml says.
    instead: Mapping[str, str]

    def service(self, name: str) -> dict[str, Any]:
        read = yaml.safe_load((DOCKER / "compose.yaml").read_text())
        found: dict[str, Any] = read["services"][name]
        return found

    def environment(self, name: str) -> dict[str, str]:
        said = {
            key: self._filled(value) for key, value in self.service(name)["environment"].items()
        }
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        image = {"PYTHONUNBUFFERED": "1", "NINEFOLD_LOCAL_CLUSTER": "off"}
        # What compose.yaml does not give to a process, it does not get here either.
        names = said.keys() | {name for name in self.instead if name not in STORES}
        here = {name: value for name, value in self.instead.items() if name in names}
        return {"PATH": path, **image, **said, **here}

    def arguments(self, command: Sequence[str]) -> list[str]:
        """With this machine's folder, address and ports."""
        said = [word.replace(HOME, str(self.home)).replace("$$", "$") for word in command]
        return [self.ports.get(word, "127.0.0.1" if word == "0.0.0.0" else word) for word in said]

    def run(self, name: str, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.arguments(command),
            cwd=ROOT,
            env=self.environment(name),
            capture_output=True,
            text=True,
            check=False,
            timeout=WITHIN,
        )

    def well(self, name: str) -> bool:
        """Whether its healthcheck says so."""
        test = self.service(name).get("healthcheck", {}).get("test") or _image("HEALTHCHECK")
        shell = test[0] == "CMD-SHELL"
        return self.run(name, ["sh", "-c", *test[1:]] if shell else test[1:]).returncode == 0

    def _filled(self, text: str) -> str:
        def value(found: re.Match[str]) -> str:
            return self.values.get(found[1]) or found[2] or ""

        return re.sub(r"\$\{([A-Z_]+)(?::[-?]([^}]*))?\}", value, text)


def _image(word: str) -> list[str]:
    """What the image itself says, as words after ``CMD``."""
    said = stages(DOCKER / "Dockerfile")[-1].last(word)
    command: list[str] = json.loads(said[said.index("[") :])
    return ["CMD", *command] if word == "HEALTHCHECK" else command


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("redis-server is not on PATH")
    folder = tmp_path_factory.mktemp("containers")
    home = folder / "home"
    for name in ("artifacts", "run", "tmp"):
        (home / name).mkdir(parents=True)
    broker = RedisBroker(folder, program=program)
    web, gateway = str(free_port()), str(free_port())
    with ExitStack() as stack:
        stack.callback(broker.close)
        broker.start()
        url = stack.enter_context(_database())
        yield Host(
            home=home,
            ports={"8000": web, "8001": gateway},
            values=_secrets(),
            instead={
                "NINEFOLD_HOME": str(home),
                "NINEFOLD_BIND": "127.0.0.1",
                "NINEFOLD_WEB_PORT": web,
                "NINEFOLD_GATEWAY_PORT": gateway,
                "NINEFOLD_CONTROL_URL": f"http://127.0.0.1:{web}",
                "NINEFOLD_DATABASE_URL": url,
                "NINEFOLD_BROKER_URL": broker.url,
            },
        )


def _secrets() -> dict[str, str]:
    """Made as docker/.env.example says."""
    return {
        "POSTGRES_PASSWORD": secrets.token_hex(24),
        "NINEFOLD_SECRET_KEY": secrets.token_urlsafe(48),
        "NINEFOLD_ENCRYPTION_KEY": base64.urlsafe_b64encode(secrets.token_bytes(32)).decode(),
        "NINEFOLD_GATEWAY_TOKEN": secrets.token_urlsafe(32),
        "NINEFOLD_METRICS_TOKEN": secrets.token_hex(24),
        "NINEFOLD_ADMIN_PASSWORD": secrets.token_urlsafe(12),
    }


@contextmanager
def _database() -> Iterator[str]:
    """An empty one on the server of the tests, for as long as it is needed."""
    server = os.environ["NINEFOLD_DATABASE_URL"]
    name = f"containers_{secrets.token_hex(4)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        base, mark, options = server.partition("?")
        yield f"{base.rpartition('/')[0]}/{name}{mark}{options}"
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@contextmanager
def _running(host: Host, name: str, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = host.arguments(host.service(name).get("command") or _image("CMD"))
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=host.environment(name),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
            process.wait(timeout=10)


def test_the_image_can_collect_its_static_files_without_a_secret(host: Host) -> None:
    [run] = [
        each for each in stages(DOCKER / "Dockerfile")[0].all("RUN") if "collectstatic" in each
    ]
    arguments = shlex.split(run.partition("&&")[0])
    said = dict(word.split("=", 1) for word in arguments if word.startswith("NINEFOLD_"))
    command = [sys.executable, *arguments[arguments.index("manage.py") :]]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**said, "NINEFOLD_HOME": str(host.home), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
        timeout=WITHIN,
    )
    assert done.returncode == 0, done.stderr
    assert (host.home / "static" / "staticfiles.json").is_file()


def test_nothing_starts_before_the_database_is_migrated(host: Host) -> None:
    check = ["python", "manage.py", "migrate", "--check"]
    assert host.run("web", check).returncode != 0
    done = host.run("migrate", host.service("migrate")["command"])
    assert done.returncode == 0, done.stderr
    assert host.run("web", check).returncode == 0


def test_every_process_starts_answers_its_probe_and_ends_when_told_to(
    host: Host, tmp_path: Path
) -> None:
    names = ("web", "worker", "beat", "watcher", "gateway")
    with ExitStack() as stack:
        logs = {name: tmp_path / f"{name}.log" for name in names}
        processes = {name: stack.enter_context(_running(host, name, logs[name])) for name in names}

        def alive() -> bool:
            for name, process in processes.items():
                assert process.poll() is None, f"{name} ended: {logs[name].read_text()[-2000:]}"
            return True

        for name in ("web", "gateway", "beat", "worker"):
            until(partial(lambda each: alive() and host.well(each), name), within=WITHIN, what=name)
        base = host.instead["NINEFOLD_CONTROL_URL"]
        ready = until(
            lambda: _answer(f"{base}/readyz") if _answer(f"{base}/readyz").ok else None,
            within=WITHIN,
            what="the web is ready",
        )
        assert set(ready.json()["parts"].values()) == {"ok"}
        until(lambda: _controllers_run(base), within=WITHIN, what="controllers run")
        alive()
        for name in reversed(names):
            processes[name].send_signal(signal.SIGTERM)
        for name, process in processes.items():
            status = process.wait(timeout=ENDS_WITHIN)
            assert status in (0, -signal.SIGTERM), f"{name}: {logs[name].read_text()[-2000:]}"
    assert {each.name for each in host.home.iterdir()} <= WRITABLE


def _answer(url: str) -> requests.Response:
    return requests.get(url, timeout=10)


def _controllers_run(base: str) -> bool:
    said = _answer(f"{base}/metrics").text
    runs = re.findall(r'ninefold_controller_runs_total\{.*outcome="good".*\} (\S+)', said)
    return sum(float(count) for count in runs) > 3
