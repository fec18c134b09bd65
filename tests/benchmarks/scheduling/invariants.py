"""What no replay may ever see: a card given twice, part of a gang, a queue above its cap.

The ledger keeps its own books from the placements alone; nothing of the scheduler's is asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from controlplane.domain.scheduling.snapshots import ReplicaPlacement
from tests.benchmarks.scheduling.traces import WHOLE, NodeShape, PodShape


class Broken(Exception):
    """An invariant did not hold."""


@dataclass(slots=True)
class Ledger:
    """What is left of every card and node, by what was handed out."""

    #: Thousandths by card.
    cards: dict[str, int]
    #: Thousandths of a core by node.
    cpu: dict[str, int]
    #: MiB by node.
    memory: dict[str, int]

    @classmethod
    def of(cls, nodes: Sequence[NodeShape]) -> Ledger:
        return cls(
            cards={f"{node.name}/{index}": WHOLE for node in nodes for index in range(node.cards)},
            cpu={node.name: node.cpu for node in nodes},
            memory={node.name: node.memory for node in nodes},
        )

    def enter(self, shape: PodShape, replicas: Sequence[ReplicaPlacement]) -> None:
        """Write down where a pod went.

        :raises Broken: if it did not get all that it asked for, or got what another has.
        """
        if len(replicas) != 1 or len(replicas[0].cards) != shape.cards:
            raise Broken(f"{shape} got {replicas}")
        (replica,) = replicas
        self.cpu[replica.node] -= shape.cpu
        self.memory[replica.node] -= shape.memory
        if self.cpu[replica.node] < 0 or self.memory[replica.node] < 0:
            raise Broken(f"{replica.node} has no free capacity for {shape}")
        for card in replica.cards:
            if not card.startswith(f"{replica.node}/"):
                raise Broken(f"{card} is not on {replica.node}")
            self.cards[card] -= shape.milli
            if self.cards[card] < 0:
                raise Broken(f"{card} was given out twice: {shape} does not fit on it")

    def leave(self, shape: PodShape, replicas: Sequence[ReplicaPlacement]) -> None:
        """Write down that a pod holds nothing any more."""
        for replica in replicas:
            self.cpu[replica.node] += shape.cpu
            self.memory[replica.node] += shape.memory
            for card in replica.cards:
                self.cards[card] += shape.milli
