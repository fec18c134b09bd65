"""The real web server in a process of its own, on the database of the test."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, urlsplit

from django.conf import settings
from django.db import connection

from launcher.services import HttpProbe
from tests.e2e.product import ROOT, free_ports

_READY_WITHIN = 120.0


@contextmanager
def web_process(home: Path, **variables: str) -> Iterator[str]:
    """Its URL. ``variables`` are further settings."""
    (port,) = free_ports(1)
    database = urlsplit(os.environ["NINEFOLD_DATABASE_URL"])
    home.mkdir(exist_ok=True)
    environment = {
        **os.environ,
        "NINEFOLD_DATABASE_URL": database._replace(
            path="/" + quote(connection.settings_dict["NAME"])
        ).geturl(),
        "DJANGO_SETTINGS_MODULE": "config.settings.test",
        "PYTHONPATH": f"{ROOT}:{ROOT / 'platform'}",
        "NINEFOLD_HOME": str(home),
        "NINEFOLD_WEB_PORT": str(port),
        "NINEFOLD_GATEWAY_TOKEN": settings.NINEFOLD_GATEWAY_TOKEN,
        **variables,
    }
    log = home / "web.log"
    with log.open("wb") as out:
        server = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "config.web_server"],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    url = f"http://127.0.0.1:{port}"
    try:
        answers, deadline = HttpProbe(url=f"{url}/healthz"), time.monotonic() + _READY_WITHIN
        while not answers():
            assert server.poll() is None, f"the web server ended:\n{log.read_text()}"
            assert time.monotonic() < deadline, f"no /healthz:\n{log.read_text()}"
            time.sleep(0.05)
        yield url
    finally:
        server.terminate()
        try:
            server.wait(timeout=20)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
