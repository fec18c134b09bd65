"""The whole product, started as a user starts it, in a home folder of its own."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.e2e.rest_client import RestClient
from tests.prepared_postgres import copy_data

ROOT = Path(__file__).resolve().parents[2]
UP_WITHIN = 900.0
DOWN_WITHIN = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """A running product."""

    home: Path
    web: str
    gateway: str
    environment: Mapping[str, str]

    @property
    def password(self) -> str:
        return (self.home / "secrets" / "admin_password").read_text().strip()

    def client(self) -> RestClient:
        return RestClient(self.web, username="admin", password=self.password)

    def launcher(self, *arguments: str, within: float = UP_WITHIN) -> str:
        """Run ``python -m launcher`` and give back what it printed.

        :raises RuntimeError: with what it printed, if it failed.
        """
        done = subprocess.run(
            [sys.executable, "-m", "launcher", *arguments],
            cwd=ROOT,
            env=dict(self.environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=within,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"launcher {' '.join(arguments)} failed:\n{done.stdout}")
        return done.stdout


def processes(product: Product, *fragments: str) -> list[psutil.Process]:
    """Processes of this product whose command line has all the words."""
    home = str(product.home)
    found = []
    for process in psutil.process_iter():
        try:
            line = " ".join(process.cmdline())
            ours = home in line or process.environ().get("NINEFOLD_HOME") == home
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
        if ours and all(word in line for word in fragments):
            found.append(process)
    return found


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on now; all are held until the last is picked."""
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def _link_environments(*, into: Path) -> None:
    """Give the product this checkout's engine environments, where there are any, as hard links.

    Creating one is tested in ``tests/integration/local_cluster`` and by ``make engine`` before these tests.
    """
    into.parent.mkdir(mode=0o711)
    engines = ROOT / "var" / "engines"
    if engines.is_dir():
        linked = subprocess.run(("cp", "-al", engines, into), check=False, capture_output=True)
        if linked.returncode:
            shutil.rmtree(into, ignore_errors=True)


@contextmanager
def running_product(*, from_nothing: bool = False, **settings: str) -> Iterator[Product]:
    """Start it, and stop it with its jobs afterwards.

    :param from_nothing: create and migrate its database as on the first day, half a minute of processor time;
        otherwise the database is a copy of a migrated one.
    :param settings: further variables.
    """
    # Not below pytest's own folder, which other accounts may not enter: jobs have accounts of their own.
    folder = Path(tempfile.mkdtemp(prefix="ninefold-product-"))
    folder.chmod(0o755)
    web, gateway = free_ports(2)
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("NINEFOLD_", "DJANGO_", "PYTEST_"))
    }
    product = Product(
        home=folder / "var",
        web=f"http://127.0.0.1:{web}",
        gateway=f"http://127.0.0.1:{gateway}",
        environment={
            **inherited,
            "NINEFOLD_HOME": str(folder / "var"),
            "NINEFOLD_WEB_PORT": str(web),
            "NINEFOLD_GATEWAY_PORT": str(gateway),
            **settings,
        },
    )
    _link_environments(into=product.home / "engines")
    if not from_nothing:
        database = product.home / "pg"
        database.mkdir()
        copy_data(into=database)
    try:
        product.launcher("up", "--detach")
        yield product
    finally:
        product.launcher("down", within=DOWN_WITHIN)
        shutil.rmtree(folder, ignore_errors=True)
