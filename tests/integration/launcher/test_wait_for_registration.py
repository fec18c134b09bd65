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
from tests.integration.launcher.process_polling import wait_for

pytestmark = pytest.mark.slow

WITHIN = 120.0
#: Megabytes; Django alone takes a hundred.
SMALL = 60
ROOT = Path(__file__).parents[3]


@pytest.fixture
def waiting_process(tmp_path: Path, transactional_db: None) -> Iterator[subprocess.Popen[str]]:
    """Waits in front of a command that makes a file."""
    server = urlsplit(os.environ["NINEFOLD_DATABASE_URL"])
    url = server._replace(path="/" + quote(connection.settings_dict["NAME"])).geturl()
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "launcher.wait_for_registration", "cluster"),
            *("touch", str(tmp_path / "started")),
        ],
        cwd=ROOT,
        env={**os.environ, "NINEFOLD_DATABASE_URL": url},
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait(WITHIN)


def is_waiting() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'ninefold wait for registration'"
            " AND query LIKE '%%fleet_cluster%%'"
        )
        row = cursor.fetchone()
    return row is not None and row[0] == 1


def test_the_command_starts_once_a_watchable_cluster_is_registered(
    waiting_process: subprocess.Popen[str], tmp_path: Path
) -> None:
    Cluster.objects.create(name="here", kind="local")
    Cluster.objects.create(name="gone", kind="kubernetes", removed_at=timezone.now())
    wait_for(is_waiting, what="it has looked")
    assert waiting_process.poll() is None
    assert psutil.Process(waiting_process.pid).memory_info().rss < SMALL << 20

    Cluster.objects.create(name="east", kind="kubernetes")
    wait_for((tmp_path / "started").exists, what="the command is running")
    assert waiting_process.wait(WITHIN) == 0


def test_a_lost_database_connection_is_retried(
    waiting_process: subprocess.Popen[str], tmp_path: Path
) -> None:
    wait_for(is_waiting, what="it has looked")
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE application_name = 'ninefold wait for registration'"
        )
    Cluster.objects.create(name="east", kind="kubernetes")
    wait_for((tmp_path / "started").exists, what="the command is running")


def test_a_missing_command_or_database_prints_the_usage() -> None:
    environment = {name: value for name, value in os.environ.items() if "NINEFOLD" not in name}
    done = subprocess.run(
        [sys.executable, "-m", "launcher.wait_for_registration", "cluster", "true"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=WITHIN,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("usage: ")
