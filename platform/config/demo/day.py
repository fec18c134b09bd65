"""A day of work in minutes: the product's own loops, turned at instants of the past.

::

    for each quarter of an hour of the day, with every simulated clock held there:
        submit what was asked for  ─▶  one scheduling cycle  ─▶  launch what got cards
        ─▶  hear what processes report  ─▶  a turn for each attempt in which something happened

Time stands still for the simulated clusters until the day is made. A day that was interrupted goes on from where
the clocks stand.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from django.db import connection

from apps.fleet.models import Node
from apps.fleet.reconcilers import inventories_sync
from apps.jobs.reconcilers.attempts import attempts_reconcile
from apps.quotas import handlers as quotas
from apps.quotas.reconcilers import cycle_run
from config import simulations
from config.demo.clock import dated
from config.demo.company import Company
from config.demo.listening import Directly
from config.demo.submitting import submit
from config.demo.workload import requests
from config.wiring import TOPICS
from controlplane.adapters.clusters.simulated import SimulatedCluster
from controlplane.domain.scheduling.policies import Policy
from controlplane.outbox import messages

TURN = timedelta(minutes=15)
#: How often a process reports while the past is made.
_REPORTS = timedelta(hours=2)
#: More than there are.
_ALL = 100_000


class Day:
    """Makes the work of one company from turn to turn."""

    def __init__(self, company: Company, *, since: datetime, until: datetime) -> None:
        self._company = company
        self._since, self._until = since, until
        self._shares = tuple(group.founding.share for group in company.groups)
        #: What each Launch was doing when it was last looked at.
        self._stages: dict[str, str] = {}

    def make(self, *, say: Callable[[datetime], None]) -> None:
        """Everything from ``since`` to ``until``; then time passes again."""
        with connection.cursor() as cursor:
            # A crash takes back the last moments only, and they are made again.
            cursor.execute("SET synchronous_commit TO OFF")
        at = self._since
        while at < self._until:
            before, at = at, min(self._until, at + TURN)
            self._turn(before, at)
            say(at)
        for cluster in self._company.clusters:
            cluster.hold(None)

    def _turn(self, before: datetime, at: datetime) -> None:
        for request in requests(since=before, until=at, shares=self._shares):
            with dated(request.at):
                submit(self._company, request)
        for cluster in self._company.clusters:
            cluster.hold(at)
        with dated(at):
            self._break_and_mend(after=before, at=at)
            cycle_run(policy=Policy(), at=at)
            _relay()
            simulations.speak(listener=Directly(), every_so_often=_REPORTS, most=_ALL)
            for cluster in self._company.clusters:
                for uid in self._changed(cluster):
                    attempts_reconcile(at=at, uids=(uid,))
            _relay()

    def _changed(self, cluster: SimulatedCluster) -> list[str]:
        """Attempts in which something happened since the last turn, by uid."""
        names = cluster.names()
        live = [name for name in names if self._stages.get(name) != "ended"]
        changed = []
        for name, seen in cluster.observe(live).items():
            stage = "ended" if seen.ended else seen.replicas[0].phase.value
            if self._stages.get(name) != stage:
                self._stages[name] = stage
                changed.append(str(seen.labels["uid"]))
        return changed

    def _break_and_mend(self, *, after: datetime, at: datetime) -> None:
        """What goes wrong on this day, and what is mended."""
        gpus, npus = self._company.clusters
        first = not Node.objects.filter(cluster__kind=simulations.KIND).exists()
        acts = (
            (timedelta(hours=9), lambda: gpus.faults.kill_card("h800-17", 3)),
            (timedelta(hours=6), lambda: npus.faults.silence("a2-09", words="no heartbeat")),
            (timedelta(hours=5), lambda: gpus.faults.slow_card("a800-05", 1, slowness=1.6)),
            (timedelta(hours=4), lambda: npus.faults.recover("a2-09")),
            (timedelta(hours=2), lambda: npus.faults.kill_card("a3-21", 10, words="HBM ECC")),
        )
        due = [act for before, act in acts if after < self._until - before <= at]
        for act in due:
            act()
        if due or first:
            inventories_sync(at=at)


def _relay() -> None:
    """Hand on all news now. One cycle a turn is enough, so none is run for each claim."""
    while messages.relay(_hear):
        pass


def _hear(topic: str, payload: dict[str, Any]) -> None:
    for task in TOPICS[topic]:
        if task is not quotas.schedule:
            task(**payload)
