"""Fault injection: cards and nodes that fail on command, and recover."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from difflib import get_close_matches

from controlplane.adapters.clusters.simulated.store import SimulationStore
from controlplane.domain.simulation.lifecycle import SimulatedFault, SimulatedFaultKind
from controlplane.ports.clusters import ClusterError


class FaultInjector:
    """Breaks cards and nodes of one cluster. Breaking what is broken already changes nothing."""

    def __init__(
        self, records: SimulationStore, *, cards: Mapping[str, int], now: Callable[[], datetime]
    ) -> None:
        self._records = records
        self._cards = cards
        self._now = now

    def kill_card(
        self, node: str, index: int, *, words: str = "uncorrectable memory error"
    ) -> None:
        """The card is not healthy, and what runs on it fails.

        :raises ClusterError: if there is no such card.
        """
        self._break(SimulatedFaultKind.CARD_DEAD, node, index, words=words)

    def slow_card(self, node: str, index: int, *, slowness: float) -> None:
        """Work that uses the card takes that many times longer.

        :raises ClusterError: if there is no such card, or it would not be slower.
        """
        if not slowness > 1:
            raise ClusterError(f"a slow card takes more than 1 times as long, got {slowness}")
        self._break(SimulatedFaultKind.CARD_SLOW, node, index, words="throttled", slowness=slowness)

    def make_unreachable(self, node: str, *, words: str = "no heartbeat") -> None:
        """The node stops reporting; when that lasts, what runs there is lost.

        :raises ClusterError: if there is no such node.
        """
        self._break(SimulatedFaultKind.NODE_UNREACHABLE, node, None, words=words)

    def recover(self, node: str, index: int | None = None) -> int:
        """Clear the faults of that card, or of the node and all of its cards; returns how many were cleared.

        :raises ClusterError: if there is no such node or card.
        """
        self._check(node, index)
        return self._records.recover(node, card=index, at=self._now())

    def present(self) -> tuple[SimulatedFault, ...]:
        """What is broken now, the oldest first."""
        at = self._now()
        return tuple(fault for fault in self._records.faults() if fault.is_active(at))

    def _break(
        self,
        kind: SimulatedFaultKind,
        node: str,
        card: int | None,
        *,
        words: str,
        slowness: float = 1.0,
    ) -> None:
        self._check(node, card)
        broken = {(one.kind, one.node, one.card) for one in self.present()}
        if (kind, node, card) not in broken:
            self._records.fault(
                SimulatedFault(
                    kind=kind,
                    node=node,
                    card=card,
                    since=self._now(),
                    slowness=slowness,
                    words=words,
                )
            )

    def _check(self, node: str, card: int | None) -> None:
        if node not in self._cards:
            raise ClusterError(unknown_node_message(node, self._cards))
        if card is not None and not 0 <= card < self._cards[node]:
            raise ClusterError(
                f"the cards of node {node!r} are 0 to {self._cards[node] - 1}, got {card}"
            )


def unknown_node_message(name: str, names: Iterable[str]) -> str:
    """That there is none of that name, and which come near."""
    known = sorted(names)
    near = get_close_matches(name, known, n=3) or known[:3]
    return f"there is no node {name!r} among the {len(known)} here; there are: {', '.join(near)}"
