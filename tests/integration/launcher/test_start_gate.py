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
from tests.integration.launcher.process_waits import wait_for

WITHIN = 20.0
#: Megabytes; Django alone takes a hundred.
SMALL = 60
ROOT = Path(__file__).parents[3]


@pytest.fixture
def start_gate(tmp_path: Path, transactional_db: None) -> Iterator[subprocess.Popen[str]]:
    """Waits in front of a command that makes a file."""
    server = urlsplit(os.environ["NINEFOLD_DATABASE_URL"])
    url = server._replace(path="/" + quote(connection.settings_dict["NAME"])).geturl()
    process = subprocess.Popen(
        [sys.executable, "-m", "launcher.start_gate", "touch", str(tmp_path / "came-in")],
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
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'ninefold start gate'"
            " AND query LIKE '%%fleet_cluster%%'"
        )
        row = cursor.fetchone()
    return row is not None and row[0] == 1


def test_the_command_starts_once_a_watchable_cluster_is_registered(
    start_gate: subprocess.Popen[str], tmp_path: Path
) -> None:
    Cluster.objects.create(name="here", kind="local")
    Cluster.objects.create(name="gone", kind="kubernetes", removed_at=timezone.now())
    wait_for(waits, what="it has looked")
    assert start_gate.poll() is None
    assert psutil.Process(start_gate.pid).memory_info().rss < SMALL << 20

    Cluster.objects.create(name="east", kind="kubernetes")
    wait_for((tmp_path / "came-in").exists, what="the command runs")
    assert start_gate.wait(WITHIN) == 0


def test_a_lost_database_connection_is_retried(
    start_gate: subprocess.Popen[str], tmp_path: Path
) -> None:
    wait_for(waits, what="it has looked")
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE application_name = 'ninefold start gate'"
        )
    Cluster.objects.create(name="east", kind="kubernetes")
    wait_for((tmp_path / "came-in").exists, what="the command runs")


def test_a_missing_command_or_database_prints_the_usage() -> None:
    environment = {name: value for name, value in os.environ.items() if "NINEFOLD" not in name}
    done = subprocess.run(
        [sys.executable, "-m", "launcher.start_gate", "true"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=WITHIN,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("usage: ")
