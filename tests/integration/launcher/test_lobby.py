"""Nothing but a small wait runs until there is a cluster to watch."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, urlsplit

import psutil
import pytest
from django.db import connection
from django.utils import timezone

from apps.fleet.models import Cluster
from tests.integration.launcher.waiting import wait_for

WITHIN = 20.0
#: Megabytes; Django alone takes a hundred.
SMALL = 60
ROOT = Path(__file__).parents[3]


@pytest.fixture
def lobby(tmp_path: Path, transactional_db: None) -> Iterator[subprocess.Popen[str]]:
    """Waits in front of a command that makes a file."""
    server = urlsplit(os.environ["NINEFOLD_DATABASE_URL"])
    url = server._replace(path="/" + quote(connection.settings_dict["NAME"])).geturl()
    process = subprocess.Popen(
        [sys.executable, "-m", "launcher.lobby", "touch", str(tmp_path / "came-in")],
        cwd=ROOT,
        env={**os.environ, "NINEFOLD_DATABASE_URL": url},
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait(WITHIN)


def waits() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'ninefold lobby'"
            " AND query LIKE '%%fleet_cluster%%'"
        )
        row = cursor.fetchone()
    return row is not None and row[0] == 1


def test_it_becomes_the_command_once_a_cluster_is_registered_that_may_speak(
    lobby: subprocess.Popen[str], tmp_path: Path
) -> None:
    Cluster.objects.create(name="here", kind="local")
    Cluster.objects.create(name="gone", kind="kubernetes", removed_at=timezone.now())
    wait_for(waits, what="it has looked")
    assert lobby.poll() is None
    assert psutil.Process(lobby.pid).memory_info().rss < SMALL << 20

    Cluster.objects.create(name="east", kind="kubernetes")
    wait_for((tmp_path / "came-in").exists, what="the command runs")
    assert lobby.wait(WITHIN) == 0


def test_a_database_that_goes_away_is_waited_for(
    lobby: subprocess.Popen[str], tmp_path: Path
) -> None:
    wait_for(waits, what="it has looked")
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE application_name = 'ninefold lobby'"
        )
    Cluster.objects.create(name="east", kind="kubernetes")
    wait_for((tmp_path / "came-in").exists, what="the command runs")


def test_without_a_command_or_a_database_it_says_how_it_is_called() -> None:
    environment = {name: value for name, value in os.environ.items() if "NINEFOLD" not in name}
    done = subprocess.run(
        [sys.executable, "-m", "launcher.lobby", "true"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=WITHIN,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("usage: ")
