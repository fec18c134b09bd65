"""The public traces: nodes and pods of a production cluster, and what was published about placing them.

The files are research data and are read from the folder that the caller names. ``openb/`` holds the nodes and the
pods of one trace each, ``fgd/`` the published allocation of six policies by seed. The experiment of the
publication (Weng et al., "Beware of Fragmentation", USENIX ATC 2023): the pods of a trace are shuffled, and then
drawn again with replacement (or removed at random) until they ask for 130 % of all cards. They arrive one after
the other; none departs, and what does not fit is not tried again.
"""

from __future__ import annotations

import csv
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

#: Those whose published figures are goals.
TRACES = ("default", "cpu250", "gpushare40", "gpushare100", "gpuspec33", "multigpu50")
SEEDS = tuple(range(42, 52))
WHOLE = 1000
#: Cards asked for, against those there are.
DEMAND = 1.3

Numbers = NDArray[np.int64]


class DataAbsent(Exception):
    """The folder lacks a file of the traces."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodShape:
    """What one pod asks for; many pods are alike."""

    #: Thousandths of a core.
    cpu: int
    #: MiB.
    memory: int
    cards: int
    #: Thousandths of each card; less than all only of a single one.
    milli: int
    #: Models that it accepts; empty means any.
    models: tuple[str, ...]

    @property
    def demand(self) -> int:
        """Thousandths of cards in all."""
        return self.cards * self.milli

    def accepts(self, model: str) -> bool:
        return not self.models or model in self.models


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeShape:
    name: str
    cpu: int
    #: MiB.
    memory: int
    cards: int
    model: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    name: str
    nodes: tuple[NodeShape, ...]
    shapes: tuple[PodShape, ...]
    #: For each pod the place of its shape in ``shapes``.
    pods: Numbers

    @property
    def cards(self) -> int:
        return sum(node.cards for node in self.nodes)

    @property
    def popularity(self) -> tuple[float, ...]:
        """Part of the pods that has each shape."""
        counts = np.bincount(self.pods, minlength=len(self.shapes))
        return tuple(float(count) / len(self.pods) for count in counts)

    def arrivals(self, seed: int) -> Numbers:
        """Shapes of the pods in the order in which they arrive, asking for ``DEMAND`` of all cards."""
        random = np.random.default_rng(seed)
        demand = np.array([shape.demand for shape in self.shapes])
        order = random.permutation(self.pods)
        limit = DEMAND * WHOLE * self.cards
        asked = int(demand[order].sum())
        if asked > limit:
            removed = random.permutation(len(order))
            enough = int(np.searchsorted(np.cumsum(demand[order[removed]]), asked - limit))
            return np.delete(order, removed[: enough + 1])
        drawn = random.choice(self.pods, size=len(self.pods) * 2)
        room = int(np.searchsorted(np.cumsum(demand[drawn]), limit - asked, side="right"))
        return np.concatenate([order, drawn[:room]])

    def nodes_in_order(self, seed: int) -> tuple[NodeShape, ...]:
        """The nodes in the order in which a policy meets them: another one for each seed."""
        places = np.random.default_rng([seed, 1]).permutation(len(self.nodes))
        return tuple(self.nodes[place] for place in places)


def _rows(path: Path) -> list[dict[str, str]]:
    if not path.is_file():
        raise DataAbsent(
            f"{path} is not there: pass the folder that holds openb/, fgd/ and philly/"
        )
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def _shape(row: Mapping[str, str]) -> PodShape:
    return PodShape(
        cpu=int(row["cpu_milli"]),
        memory=int(row["memory_mib"]),
        cards=int(row["num_gpu"]),
        milli=int(row["gpu_milli"]) if int(row["num_gpu"]) else 0,
        models=tuple(sorted({name for name in (row.get("gpu_spec") or "").split("|") if name})),
    )


def load(folder: Path, name: str) -> Trace:
    """One trace with its cluster.

    :raises DataAbsent: if a file of it is not in the folder.
    """
    nodes = tuple(
        NodeShape(
            name=row["sn"],
            cpu=int(row["cpu_milli"]),
            memory=int(row["memory_mib"]),
            cards=int(row["gpu"]),
            model=row["model"],
        )
        for row in _rows(folder / "openb" / "openb_node_list_gpu_node.csv")
    )
    shapes = [_shape(row) for row in _rows(folder / "openb" / f"openb_pod_list_{name}.csv")]
    places = {shape: place for place, shape in enumerate(dict.fromkeys(shapes))}
    return Trace(
        name=name,
        nodes=nodes,
        shapes=tuple(places),
        pods=np.array([places[shape] for shape in shapes]),
    )


def published(folder: Path, *, demand: int = 100) -> dict[tuple[str, str], float]:
    """Mean allocation in percent by trace and policy when so many percent of the cards were asked for.

    :raises DataAbsent: if the figures are not in the folder.
    """
    by_seed: dict[tuple[str, str], list[float]] = {}
    for row in _rows(folder / "fgd" / "analysis_allo_discrete.csv"):
        key = (row["workload"].removeprefix("openb_pod_list_"), row["sc_policy"].split("-")[1])
        by_seed.setdefault(key, []).append(float(row[str(demand)]))
    return {key: statistics.mean(values) for key, values in by_seed.items()}


def typical(trace: Trace, *, popularity: float = 0.95) -> tuple[tuple[PodShape, float], ...]:
    """The most frequent shapes that together make up such a part of the pods, with their weights (sum 1).

    Memory does not tell shapes apart here, as in the publication.
    """
    parts: dict[PodShape, float] = {}
    for shape, part in zip(trace.shapes, trace.popularity, strict=True):
        equivalent = replace(shape, memory=0)
        parts[equivalent] = parts.get(equivalent, 0) + part
    chosen: list[tuple[PodShape, float]] = []
    covered = 0.0
    for shape, part in sorted(
        parts.items(),
        key=lambda item: (item[1], item[0].cpu, item[0].milli, item[0].cards, item[0].models),
        reverse=True,
    ):
        if covered >= popularity:
            break
        chosen.append((shape, part))
        covered += part
    return tuple((shape, part / covered) for shape, part in chosen)
