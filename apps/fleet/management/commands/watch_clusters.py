"""Follow clusters, so that what happens there is known within a second."""

from __future__ import annotations

import signal
import threading
from typing import Any

from django.core.management.base import BaseCommand

from apps.fleet.management import watches


class Command(BaseCommand):
    help = (
        "Follow every cluster that says when something changed. One process does so at a time; others wait to "
        "take over from it. Without it everything still happens, some seconds later."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        stopping = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stopping.set())
        watches.clusters_watch(stopping=stopping)
