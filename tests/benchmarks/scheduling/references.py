"""Three published policies on the published cluster model, to stand beside ours: Random, BestFit and FGD.

Facts from Weng et al., "Beware of Fragmentation" (USENIX ATC 2023), and its public simulator:

- *Random*: any node that fits, and of it any card that fits.
- *BestFit*: the node with the least left of CPU and cards, each against the largest node (128 cores, 8 cards);
  of it the fullest card that fits.
- *FGD*: the node, and of it the card, where fragmentation grows least. A score is a whole number from 0 to 100,
  and the first node of a fixed order, drawn anew for each seed, wins among equals.

Fragmentation of a node is what typical pods, each by its weight, cannot use of it: all that is free where the pod
does not fit, and the cards that are too full for it where it does. With ``high(m)``, what is free on cards that
have at least ``m`` thousandths left, that is ``free - Σ weight · high(m)`` over the typical pods that fit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tests.benchmarks.scheduling.traces import WHOLE, NodeShape, Numbers, PodShape, Trace, typical

LARGEST_CPU = 128_000
LARGEST_CARDS = 8 * WHOLE
MOST_CARDS = 8
NO_NODE = -1

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


class Cluster:
    """What is free: CPU and memory by node, thousandths by card."""

    def __init__(self, nodes: Sequence[NodeShape]) -> None:
        self.models = sorted({node.model for node in nodes})
        self.model = np.array([self.models.index(node.model) for node in nodes])
        self.cpu = np.array([node.cpu for node in nodes])
        self.memory = np.array([node.memory for node in nodes])
        self.cards = np.zeros((len(nodes), MOST_CARDS), dtype=np.int64)
        for place, node in enumerate(nodes):
            self.cards[place, : node.cards] = WHOLE
        self.most = self.cards.max(axis=1)
        self.whole = (self.cards == WHOLE).sum(axis=1)
        self.left = self.cards.sum(axis=1)

    def accepts(self, shape: PodShape) -> Mask:
        """Models that it may run on; a pod without cards may run on any."""
        accepted = [not shape.cards or shape.accepts(model) for model in self.models]
        of_nodes: Mask = np.array(accepted, dtype=np.bool_)[self.model]
        return of_nodes

    def fits(self, shape: PodShape, accepted: Mask) -> Mask:
        fits: Mask = accepted & (self.cpu >= shape.cpu) & (self.memory >= shape.memory)
        if shape.cards == 1:
            fits &= self.most >= shape.milli
        elif shape.cards:
            fits &= self.whole >= shape.cards
        return fits

    def take(self, node: int, shape: PodShape, card: int) -> None:
        """A single card is the given one; several are the first that are whole."""
        self.cpu[node] -= shape.cpu
        self.memory[node] -= shape.memory
        if not shape.cards:
            return
        cards = self.cards[node]
        if shape.cards == 1:
            cards[card] -= shape.milli
        else:
            cards[np.flatnonzero(cards == WHOLE)[: shape.cards]] = 0
        self.most[node] = cards.max()
        self.whole[node] = np.count_nonzero(cards == WHOLE)
        self.left[node] = cards.sum()


def _tightest(cards: Numbers, milli: int) -> int:
    return int(np.where(cards >= milli, cards, WHOLE + 1).argmin())


@dataclass(slots=True)
class Random:
    cluster: Cluster
    random: np.random.Generator

    def choose(self, shape: PodShape, fits: Mask) -> tuple[int, int]:
        node = int(self.random.choice(np.flatnonzero(fits)))
        fitting = np.flatnonzero(self.cluster.cards[node] >= max(shape.milli, 1))
        if shape.cards != 1 or shape.milli == WHOLE:
            return node, int(fitting[0]) if len(fitting) else 0
        return node, int(self.random.choice(fitting))


@dataclass(slots=True)
class BestFit:
    cluster: Cluster

    def choose(self, shape: PodShape, fits: Mask) -> tuple[int, int]:
        left = (self.cluster.cpu - shape.cpu) / LARGEST_CPU
        left = left + (self.cluster.left - shape.demand) / LARGEST_CARDS
        score = np.where(fits, ((1 - left / 2) * 100).astype(np.int64), NO_NODE)
        node = int(score.argmax())
        return node, _tightest(self.cluster.cards[node], shape.milli)


class Fragmentation:
    """Of many states of nodes at once, by tables: typical pods that ask alike of cards are one column."""

    def __init__(self, pods: Sequence[tuple[PodShape, float]], models: Sequence[str]) -> None:
        kinds = sorted({(pod.milli, pod.cards) for pod, _weight in pods if pod.cards})
        self.floors = np.unique([pod.cpu for pod, _weight in pods])
        self.needs = np.array([milli * cards for milli, cards in kinds])
        free = np.arange(WHOLE + 1)[:, np.newaxis]
        #: By thousandths left of a card: what of them each column can use.
        self.usable = free * (free >= np.array([milli for milli, _cards in kinds]))
        #: By CPU, model and column: weight of the typical pods that could run there.
        self.weights = np.zeros((len(self.floors) + 1, len(models), len(kinds)))
        for pod, weight in pods:
            if not pod.cards:
                continue
            rank = int(np.searchsorted(self.floors, pod.cpu)) + 1
            for place, model in enumerate(models):
                if pod.accepts(model):
                    self.weights[rank:, place, kinds.index((pod.milli, pod.cards))] += weight

    def of(self, high: Numbers, *, left: Numbers, cpu: Numbers, model: Numbers) -> Floats:
        """Thousandths; ``high`` has a last axis of columns, the others all but that one."""
        weights = self.weights[np.searchsorted(self.floors, cpu, side="right"), model]
        fragmented: Floats = left - (weights * high * (high >= self.needs)).sum(axis=-1)
        return fragmented


@dataclass(slots=True)
class _Scores:
    """Of one shape on every node, as of a point of the log of changes."""

    score: Numbers
    card: Numbers
    seen: int = 0


@dataclass(slots=True)
class Gradient:
    """FGD. A score is computed again only where the node changed since the shape was last met."""

    cluster: Cluster
    fragmentation: Fragmentation
    changed: list[int] = field(default_factory=list)
    known: dict[PodShape, _Scores] = field(default_factory=dict)

    def choose(self, shape: PodShape, fits: Mask) -> tuple[int, int]:
        scores = self.known.get(shape)
        if scores is None:
            nodes = np.arange(len(fits))
            scores = _Scores(score=np.zeros(len(fits), dtype=np.int64), card=np.zeros_like(nodes))
            self.known[shape] = scores
        else:
            nodes = np.unique(np.array(self.changed[scores.seen :], dtype=np.int64))
        scores.seen = len(self.changed)
        nodes = nodes[fits[nodes]]
        if len(nodes):
            scores.score[nodes], scores.card[nodes] = self._scored(shape, nodes)
        node = int(np.where(fits, scores.score, NO_NODE).argmax())
        self.changed.append(node)
        return node, int(scores.card[node])

    def _scored(self, shape: PodShape, nodes: Numbers) -> tuple[Numbers, Numbers]:
        """Of each of those nodes its score, and the card that has it."""
        cluster, fragmentation = self.cluster, self.fragmentation
        cards = cluster.cards[nodes]
        cpu, model, left = cluster.cpu[nodes], cluster.model[nodes], cluster.left[nodes]
        high = fragmentation.usable[cards].sum(axis=1)
        before = fragmentation.of(high, left=left, cpu=cpu, model=model)
        if shape.cards != 1 or shape.milli == WHOLE:
            after = fragmentation.of(
                high - shape.cards * fragmentation.usable[WHOLE],
                left=left - shape.demand,
                cpu=cpu - shape.cpu,
                model=model,
            )
            return _whole_number(before - after), (cards == WHOLE).argmax(axis=1)
        rest = np.maximum(cards - shape.milli, 0)
        after = fragmentation.of(
            high[:, np.newaxis] - fragmentation.usable[cards] + fragmentation.usable[rest],
            left=(left - shape.demand)[:, np.newaxis],
            cpu=(cpu - shape.cpu)[:, np.newaxis],
            model=model[:, np.newaxis],
        )
        score = np.where(
            cards >= shape.milli, _whole_number(before[:, np.newaxis] - after), NO_NODE
        )
        best = score.argmax(axis=1)
        return score[np.arange(len(nodes)), best], best


def _whole_number(gained: Floats) -> Numbers:
    """A score from 0 to 100 of thousandths of fragmentation that vanish."""
    return (100 / (1 + np.exp(-gained / WHOLE))).astype(np.int64)


Policy = Random | BestFit | Gradient
FACTORIES: dict[str, Callable[[Trace, Cluster, int], Policy]] = {
    "Random": lambda trace, cluster, seed: Random(cluster, np.random.default_rng([seed, 2])),
    "BestFit": lambda trace, cluster, seed: BestFit(cluster),
    "FGD": lambda trace, cluster, seed: Gradient(
        cluster, Fragmentation(typical(trace), cluster.models)
    ),
}


def run(policy: str, trace: Trace, seed: int) -> tuple[Numbers, Numbers]:
    """Thousandths of cards that had been asked for, and that were in use, after each arrival."""
    cluster = Cluster(trace.nodes_in_order(seed))
    chooser = FACTORIES[policy](trace, cluster, seed)
    accepted = [cluster.accepts(shape) for shape in trace.shapes]
    arrivals = trace.arrivals(seed)
    placed = np.zeros(len(arrivals), dtype=np.int64)
    for arrival, place in enumerate(arrivals):
        shape = trace.shapes[place]
        fits = cluster.fits(shape, accepted[place])
        if fits.any():
            node, card = chooser.choose(shape, fits)
            cluster.take(node, shape, card)
            placed[arrival] = shape.demand
    demand = np.array([shape.demand for shape in trace.shapes])
    return np.cumsum(demand[arrivals]), np.cumsum(placed)


def allocation(asked: Numbers, used: Numbers, *, cards: int, demand: int = 100) -> float:
    """Percent of the cards in use when so many percent had been asked for.

    The average over the arrivals at which the demand rounds to that, or to what comes nearest to it.
    """
    away = np.abs(np.rint(asked / cards / 10) - demand)
    return float((used[away == away.min()] / cards / 10).mean())
