"""``manage.py simulate``: register simulated clusters, report for their processes, inject and clear faults."""

from __future__ import annotations

import signal
import threading
import tomllib
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from apps.fleet.reconcilers import inventories_sync
from config import simulated_clusters
from controlplane.adapters.clusters.simulated.progress_reports import (
    HttpReportReceiver,
    ReceiverUnavailable,
)
from controlplane.ports.clusters import ClusterError

_POLL_SECONDS = 2.0
_MAX_REPORTS = 50


class Command(BaseCommand):
    help = "Register simulated clusters, speak for their processes, break cards and nodes and mend them."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        create = verbs.add_parser("create", help="register a cluster by its description")
        create.add_argument("cluster")
        create.add_argument("description", type=Path, help="a TOML file of [[groups]]")
        create.add_argument("--speed", type=float, default=1.0, help="seconds simulated in one")
        create.add_argument("--hours", type=float, default=1.6, help="usual length of a training")
        run = verbs.add_parser("run", help="speak for the processes of every cluster")
        run.add_argument("--every", type=float, default=30.0, help="seconds between reports")
        for verb, help_text in (
            ("kill", "break a card"),
            ("slow", "slow a card down"),
            ("silence", "let nobody hear of a node"),
            ("recover", "mend a card, or a node with all of its cards"),
        ):
            one = verbs.add_parser(verb, help=help_text)
            one.add_argument("cluster")
            one.add_argument("place", metavar="NODE[/CARD]")
            if verb == "slow":
                one.add_argument("--times", type=float, default=2.0, help="longer that work takes")
        verbs.add_parser("list", help="say what is broken")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            self._run_subcommand(options)
        except (ClusterError, OSError, tomllib.TOMLDecodeError) as error:
            raise CommandError(str(error)) from error

    def _run_subcommand(self, options: dict[str, Any]) -> None:
        match options["verb"]:
            case "create":
                self._create_cluster(options)
            case "run":
                self._run_clusters(every=timedelta(seconds=options["every"]))
            case "list":
                self._list_clusters()
            case verb:
                self._inject_or_clear_fault(verb, options)

    def _create_cluster(self, options: dict[str, Any]) -> None:
        described = tomllib.loads(options["description"].read_text(encoding="utf-8"))
        simulated_clusters.ensure_simulated_cluster(
            options["cluster"], fleet=described, speed=options["speed"], hours=options["hours"]
        )
        inventories_sync(at=timezone.now())
        cards = sum(
            len(node.cards)
            for node in simulated_clusters.cluster_named(options["cluster"]).inventory()
        )
        self.stdout.write(f"{options['cluster']} has {cards} cards; speak for it: simulate run")

    def _run_clusters(self, *, every: timedelta) -> None:
        stopped = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stopped.set())
        while not stopped.wait(_POLL_SECONDS):
            try:
                simulated_clusters.report_simulated_processes(
                    listener=HttpReportReceiver(), interval=every, limit=_MAX_REPORTS
                )
            except ReceiverUnavailable as away:
                self.stderr.write(f"nobody hears the simulated processes: {away}")

    def _list_clusters(self) -> None:
        for row, cluster in simulated_clusters.all_clusters():
            broken = cluster.faults.present()
            self.stdout.write(f"{row.name}: {len(broken) or 'nothing'} broken")
            for fault in broken:
                since = f"{fault.since:%Y-%m-%d %H:%M:%S} UTC"
                self.stdout.write(f"  {fault.location}: {fault.message}, since {since}")

    def _inject_or_clear_fault(self, verb: str, options: dict[str, Any]) -> None:
        cluster = simulated_clusters.cluster_named(options["cluster"])
        node, slash, text = options["place"].partition("/")
        if slash and not text.isdecimal():
            raise ClusterError(f"a card is named NODE/NUMBER, got {options['place']!r}")
        card = int(text) if slash else None
        if verb in ("kill", "slow") and card is None:
            raise ClusterError(f"{verb} needs a card, such as {node}/0")
        match verb, card:
            case "kill", int():
                cluster.faults.kill_card(node, card)
            case "slow", int():
                cluster.faults.slow_card(node, card, slowness=options["times"])
            case "silence", _:
                cluster.faults.make_unreachable(node)
            case _:
                ended = cluster.faults.recover(node, card)
                self.stdout.write(f"{ended} troubles ended")
        inventories_sync(at=timezone.now())
