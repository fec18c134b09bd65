"""The demonstration: a company on simulated clusters, its day of work, and its life from then on."""

from __future__ import annotations

import signal
import threading
from datetime import datetime, timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.utils import timezone

from apps.accounts.services import administrator_ensure
from apps.jobs.models import Job
from apps.models.selectors.catalog import published
from apps.models.services.catalog import catalog_load
from config import simulations
from config.demo.company import Company, company
from config.demo.day import TURN, Day
from config.demo.submitting import submit
from config.demo.workload import requests
from config.management.commands.bootstrap import ADMINISTRATOR
from config.settings.environment import secret
from controlplane.adapters.clusters.simulated.reporting import Away, ByHttp

_DAY = timedelta(hours=24)
_TURN_SECONDS = 2.0
_REPORTS = timedelta(minutes=1)
#: Reports in one turn: what the web server takes beside its visitors.
_MOST = 12


class Command(BaseCommand):
    help = "Make the company of the demonstration, or keep it going. Safe to repeat."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("what", choices=("make", "run"))
        parser.add_argument(
            "--hours", type=float, default=_DAY.total_seconds() / 3600, help="of the past to make"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        admin = administrator_ensure(username=ADMINISTRATOR, password=secret("admin_password"))
        made = company(admin=admin)
        if options["what"] == "make":
            self._make(made, past=timedelta(hours=options["hours"]))
        else:
            self._run(made)

    def _make(self, made: Company, *, past: timedelta) -> None:
        """The day, unless there is one; an interrupted one goes on from where its clocks stand."""
        stands = made.clusters[0].stands_at()
        if stands is None and Job.objects.exists():
            self.stdout.write("the company is there; it goes on from here")
            return
        until = timezone.now()
        catalog_load(catalog=published(), at=until)
        self.stdout.write(f"making {past} of work on simulated clusters")

        def say(at: datetime) -> None:
            if (at - since) % timedelta(hours=3) < TURN:
                self.stdout.write(f"  {at:%H:%M}: {Job.objects.count()} jobs so far")

        since = stands or until - past
        Day(made, since=since, until=until).make(say=say)
        self.stdout.write(f"{Job.objects.count()} jobs of the past day are made")

    def _run(self, made: Company) -> None:
        """Speak for simulated processes and submit what comes up, until a signal asks to stop."""
        stopped = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stopped.set())
        shares = tuple(group.founding.share for group in made.groups)
        newest = Job.objects.order_by("-created_at").values_list("created_at", flat=True).first()
        # What would have come up while nothing ran is left out.
        since = max(newest or timezone.now(), timezone.now() - TURN)
        while not stopped.wait(_TURN_SECONDS):
            at = timezone.now()
            for request in requests(since=since, until=at, shares=shares):
                submit(made, request)
            since = at
            try:
                simulations.speak(listener=ByHttp(), every_so_often=_REPORTS, most=_MOST)
            except Away as away:
                self.stderr.write(f"nobody hears the simulated processes yet: {away}")
