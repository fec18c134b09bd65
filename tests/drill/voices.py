"""The fleet's voices: texts of exporters, pushes of agents and conditions of nodes, and nothing else.

Every second node has an agent that pushes; the others are read as their exporter prints. Texts go in by the same
services as those of real nodes. What is broken is known here only as what the exporter prints.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from random import Random
from typing import Any

from apps.fleet.models import Cluster
from apps.monitoring.reconcilers.health import changed_fault_signals
from apps.monitoring.services.faults import signals_record
from apps.monitoring.services.metric_ingestion import (
    MetricPush,
    metric_push_record,
    readings_record,
)
from apps.telemetry.models import NodeToken, Source
from apps.telemetry.services.metric_batches import MetricBatchResult
from apps.telemetry.services.metric_sources import metric_source_record_scrape
from apps.telemetry.services.node_tokens import node_token_issue
from controlplane.adapters.clusters.kubernetes.node_conditions import node_condition_signals
from controlplane.domain.telemetry.metrics import CardMetricsReading
from controlplane.ports.clusters import ClusterDiagnosis
from controlplane.ports.expositions import MalformedExposition, exposition_reader_of_vendor
from controlplane.ports.telemetry import TelemetryBatch
from tests.drill.expositions import exposition
from tests.drill.faults import Node


class Voices:
    """Says of each node what its exporter or agent prints, when it is asked to."""

    def __init__(self, cluster: Cluster, nodes: Sequence[Node], *, draws: Random) -> None:
        self._cluster = cluster
        self._draws = draws
        self._nodes = {node.name: node for node in nodes}
        self._codes: dict[str, dict[int, str]] = {}
        self._conditions: dict[str, str] = {}
        self._readers = {vendor: exposition_reader_of_vendor(vendor) for vendor in self.vendors}
        self._sources = {
            vendor: Source.objects.create(
                name=f"drill-{vendor}",
                cluster=cluster,
                kind="exporter",
                options={"vendor": vendor},
                every=5,
            )
            for vendor in self.vendors
        }
        agents = [node.name for node in nodes[1::2]]
        for row in cluster.nodes.filter(name__in=agents):
            node_token_issue(node=row, actor=None)
        tokens = NodeToken.objects.select_related("node__cluster").filter(node__name__in=agents)
        self._tokens = {token.node.name: token for token in tokens}
        self._sequence = 0

    @property
    def vendors(self) -> tuple[str, ...]:
        return tuple(sorted({node.vendor for node in self._nodes.values()}))

    # -- What exporters print from now on --

    def say(self, node: str, index: int, code: str) -> None:
        self._codes.setdefault(node, {})[index] = code

    def condition(self, node: str, kind: str) -> None:
        """A condition of the node; ``Ready`` stands for a Ready that is unknown."""
        self._conditions[node] = kind

    def hush(self, node: str | None = None) -> None:
        """Nothing is said to be wrong any more, of the node or of all."""
        names = [node] if node is not None else list(self._nodes)
        for name in names:
            self._conditions.pop(name, None)
            self._codes.pop(name, None)

    def complaining(self) -> list[str]:
        """Nodes that say that something is wrong with a card."""
        return sorted(self._codes)

    # -- And how it is heard --

    def report(self, name: str, *, at: datetime) -> None:
        """That node's agent pushes, or its exporter is read."""
        node = self._nodes[name]
        if name in self._tokens:
            self._push(node, self.text(node), at=at)
        else:
            self.read({node.vendor: [(node, self.text(node))]}, at=at)

    def report_all(self, *, at: datetime, but: Iterable[str] = ()) -> int:
        """Every exporter is read in one round, agents' nodes too; how many signs came of it."""
        left_out = set(but)
        texts: dict[str, list[tuple[Node, str]]] = {vendor: [] for vendor in self.vendors}
        for name, node in self._nodes.items():
            if name not in left_out:
                texts[node.vendor].append((node, self.text(node)))
        return sum(recorded.signals for recorded in self.read(texts, at=at))

    def read(
        self, texts: Mapping[str, Sequence[tuple[Node, str]]], *, at: datetime
    ) -> list[MetricBatchResult]:
        """Texts as exporters printed them; of those in no format nothing is read, as when one does not answer."""
        done = []
        for vendor, printed in texts.items():
            readings: list[CardMetricsReading] = []
            unreachable: dict[str, str] = {}
            for node, text in printed:
                try:
                    readings += self._readers[vendor].read(text, at=at, node=node.name).readings
                except MalformedExposition as malformed:
                    unreachable[node.name] = str(malformed)
            if not printed:
                continue
            source = self._sources[vendor]
            recorded = readings_record(source=source, readings=readings, at=at)
            batch = TelemetryBatch(readings=tuple(readings), unreachable=unreachable)
            metric_source_record_scrape(source=source, at=at, recorded=recorded, batch=batch)
            done.append(recorded)
        return done

    def report_conditions(self, *, at: datetime) -> None:
        """All nodes as their cluster's interface would list them."""
        conditions = tuple(
            sign
            for name in self._nodes
            for sign in node_condition_signals(self._listed(name, at=at))
        )
        signals = tuple(
            changed_fault_signals(self._cluster, ClusterDiagnosis(signals=conditions), at=at)
        )
        if signals:
            signals_record(signals=signals, at=at)

    def _push(self, node: Node, text: str, *, at: datetime) -> None:
        self._sequence += 1
        push = MetricPush(vendor=node.vendor, sequence=self._sequence, measured_at=at, text=text)
        metric_push_record(token=self._tokens[node.name], push=push, at=at)

    def _listed(self, name: str, *, at: datetime) -> Mapping[str, Any]:
        kind = self._conditions.get(name, "")
        ready = {"type": "Ready", "status": "Unknown" if kind == "Ready" else "True"}
        others = [{"type": kind, "status": "True"}] if kind not in ("", "Ready") else []
        return {"metadata": {"name": name}, "status": {"conditions": [ready, *others]}}

    def text(self, node: Node) -> str:
        """What its exporter prints with the current codes."""
        return exposition(node, self._codes.get(node.name, {}), draws=self._draws)
