"""Once this machine is a node, the waiting process has a token and becomes the agent of that node."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, urlsplit

import psutil
import pytest
from django.db import connection

from apps.accounts.services.personal_tokens import token_digest
from apps.fleet.models import Card, Cluster, Node
from apps.telemetry.models import NodeToken
from tests.integration.launcher.process_polling import wait_for

pytestmark = pytest.mark.slow

WITHIN = 120.0
ROOT = Path(__file__).parents[3]


@pytest.fixture
def agent(tmp_path: Path, transactional_db: None) -> Iterator[psutil.Process]:
    """Waits for the node of this machine; nobody answers where it pushes."""
    server = urlsplit(os.environ["NINEFOLD_DATABASE_URL"])
    url = server._replace(path="/" + quote(connection.settings_dict["NAME"])).geturl()
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "launcher.wait_for_registration", "node"),
                *(str(tmp_path / "token"), str(tmp_path / "sequence")),
            ],
            cwd=ROOT,
            env={
                **os.environ,
                "NINEFOLD_DATABASE_URL": url,
                "NINEFOLD_CONTROL_URL": "http://127.0.0.1:9",
                "PYTHONUNBUFFERED": "1",
            },
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        yield psutil.Process(process.pid)
    finally:
        process.kill()
        process.wait(WITHIN)


def test_the_agent_is_started_without_the_database_url(
    agent: psutil.Process, tmp_path: Path
) -> None:
    local = Cluster.objects.create(name="local", kind="local")
    # What this machine was called before, and a node of another cluster.
    gone = Node.objects.create(cluster=local, name="before", ready=False)
    east = Cluster.objects.create(name="east", kind="kubernetes")
    other = Node.objects.create(cluster=east, name="gpu-1")
    for node in (gone, other):
        Card.objects.create(node=node, index=0, chip="nvidia-h100")
    node = Node.objects.create(cluster=local, name="n7")
    Card.objects.bulk_create(Card(node=node, index=index, chip="cpu") for index in range(3))

    def line() -> list[str]:
        return list(agent.cmdline())

    wait_for(lambda: "ninefold_runtime.agent" in line(), what="it is the agent", seconds=60)
    arguments = " ".join(line())
    assert "--node n7" in arguments
    assert "--reader cpu --cards 3" in arguments
    assert f"--state {tmp_path / 'sequence'}" in arguments
    assert "NINEFOLD_DATABASE_URL" not in agent.environ()
    token = tmp_path / "token"
    assert stat.S_IMODE(token.stat().st_mode) == 0o600
    assert NodeToken.objects.get(digest=token_digest(token.read_text().strip())).node == node
    wait_for(
        lambda: "reads cpu cards of n7 every 5 s" in (tmp_path / "log").read_text(),
        what="it reads",
    )


def test_missing_arguments_print_the_usage() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "launcher.wait_for_registration", "node"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=WITHIN,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("usage: ")
