"""``manage.py stop_jobs``: stop every launch on the local clusters and wait until it has ended."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from apps.fleet import selectors as fleet
from apps.fleet.models import Cluster

POLL_SECONDS = 0.2


class Command(BaseCommand):
    help = "Stop every Launch of the local clusters; jobs can be gone on with after the next start."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--grace", type=float, default=20.0, help="seconds to save in")

    def handle(self, *args: Any, **options: Any) -> None:
        grace = timedelta(seconds=options["grace"])
        for cluster in Cluster.objects.filter(kind="local"):
            adapter = fleet.cluster_adapter(cluster)
            deadline = time.monotonic() + grace.total_seconds() + 10
            running = {
                name for name, seen in adapter.observe(adapter.names()).items() if not seen.ended
            }
            self.stdout.write(f"stopping {len(running)} on {cluster.name}")
            for name in running:
                adapter.stop(name, grace=grace)
            while running and time.monotonic() < deadline:
                time.sleep(POLL_SECONDS)
                running = {n for n, seen in adapter.observe(running).items() if not seen.ended}
            for name in sorted(running):
                self.stderr.write(f"{name} still runs")
