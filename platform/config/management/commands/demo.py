"""``manage.py demo``: create the sample company and a day of its jobs, or keep it running."""

from __future__ import annotations

import signal
import threading
from datetime import datetime, timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.utils import timezone

from apps.accounts.services import administrator_ensure
from apps.jobs.models import Job
from apps.models.selectors.catalog import published_catalog
from apps.models.services.catalog import catalog_load
from config import simulated_clusters
from config.demo.sample_company import DemoCompany, create_demo_company
from config.demo.simulated_day import INTERVAL, DemoDay, demo_job_requests, submit_demo_job
from config.management.commands.bootstrap import ADMINISTRATOR
from config.settings.environment import read_secret
from controlplane.adapters.clusters.simulated.progress_reports import (
    HttpReportReceiver,
    ReceiverUnavailable,
)

_DAY = timedelta(hours=24)
_POLL_SECONDS = 2.0
_REPORTS = timedelta(minutes=1)
#: Reports per iteration: what the web server handles beside its visitors.
_MAX_REPORTS = 12


class Command(BaseCommand):
    help = "Make the company of the demonstration, or keep it going. Safe to repeat."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("what", choices=("make", "run"))
        parser.add_argument(
            "--hours", type=float, default=_DAY.total_seconds() / 3600, help="of the past to make"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        admin = administrator_ensure(username=ADMINISTRATOR, password=read_secret("admin_password"))
        sample_company = create_demo_company(admin=admin)
        if options["what"] == "make":
            self._simulate_past(sample_company, past=timedelta(hours=options["hours"]))
        else:
            self._run_until_stopped(sample_company)

    def _simulate_past(self, sample_company: DemoCompany, *, past: timedelta) -> None:
        """Simulate the past day unless it exists; resume an interrupted one."""
        resume_at = sample_company.clusters[0].frozen_at()
        if resume_at is None and Job.objects.exists():
            self.stdout.write("the company is there; it goes on from here")
            return
        until = timezone.now()
        catalog_load(catalog=published_catalog(), at=until)
        self.stdout.write(f"making {past} of work on simulated clusters")

        def report(at: datetime) -> None:
            if (at - since) % timedelta(hours=3) < INTERVAL:
                self.stdout.write(f"  {at:%H:%M}: {Job.objects.count()} jobs so far")

        since = resume_at or until - past
        DemoDay(sample_company, since=since, until=until).run(report=report)
        self.stdout.write(f"{Job.objects.count()} jobs of the past day are made")

    def _run_until_stopped(self, sample_company: DemoCompany) -> None:
        """Report for simulated processes and submit jobs until a signal to stop."""
        stopped = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stopped.set())
        shares = tuple(demo_team.description.share for demo_team in sample_company.teams)
        newest = Job.objects.order_by("-created_at").values_list("created_at", flat=True).first()
        # Jobs of the time when nothing ran are skipped.
        since = max(newest or timezone.now(), timezone.now() - INTERVAL)
        while not stopped.wait(_POLL_SECONDS):
            at = timezone.now()
            for request in demo_job_requests(since=since, until=at, shares=shares):
                submit_demo_job(sample_company, request)
            since = at
            try:
                simulated_clusters.report_simulated_processes(
                    listener=HttpReportReceiver(), interval=_REPORTS, limit=_MAX_REPORTS
                )
            except ReceiverUnavailable as away:
                self.stderr.write(f"nobody hears the simulated processes yet: {away}")
