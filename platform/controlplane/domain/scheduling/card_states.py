"""The states that the cards of a node can be in, each computed once.

A node of eight cards has few states, and thousands of nodes share them: which requests a state can serve, which
cards it would allocate and what is left then follows from the hardware rules (``common.topology``) the first
time it is needed, and is read from a table afterwards. That makes ten thousand cards cheap.
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from controlplane.domain.common.reasons import ReasonedValueError
from controlplane.domain.common.topology import choose_cards
from controlplane.domain.quotas.claims import WHOLE_CARD
from controlplane.domain.scheduling.snapshots import CardLayout, ReplicaShape

Number = TypeVar("Number", bound=np.generic)

_UNKNOWN = -2
_NOTHING: NDArray[np.int32] = np.zeros(0, dtype=np.int32)

#: What is left of each card of a node, in thousandths, in order of their indices.
Left = tuple[int, ...]


class CardAllocation(NamedTuple):
    """What serving a request does to a state."""

    #: Positions of the cards that it gets.
    positions: tuple[int, ...]
    #: The state afterwards.
    to: int


class CardStates:
    """States by number, with one table per kind of query."""

    def __init__(self, *, width: int) -> None:
        """:param width: the most cards that a node has."""
        self.width = width
        self._numbers: dict[tuple[int, Left], int] = {}
        self._layout_numbers: dict[CardLayout, int] = {}
        self._layouts: list[CardLayout] = []
        self._layout: list[int] = []
        self._left: list[Left] = []
        self._steps: dict[tuple[int, int, int], CardAllocation | None] = {}
        self._after_release: dict[tuple[int, tuple[int, ...], int], int] = {}
        self._most = _NOTHING
        self._gives: NDArray[np.bool_] = np.zeros((0, width + 1), dtype=np.bool_)
        self._lefts: NDArray[np.int32] = np.zeros((0, width), dtype=np.int32)
        self._next: dict[tuple[int, int], NDArray[np.int32]] = {}
        self._replica_counts: dict[tuple[int, int], NDArray[np.int32]] = {}

    def __len__(self) -> int:
        return len(self._left)

    def layout(self, layout: CardLayout) -> int:
        """Return the number of the card layout."""
        number = self._layout_numbers.setdefault(layout, len(self._layouts))
        if number == len(self._layouts):
            self._layouts.append(layout)
        return number

    def number(self, layout: int, left: Left) -> int:
        """Return the number of the state with that much left of each card."""
        key = (layout, left)
        number = self._numbers.get(key)
        return self._add_state(key) if number is None else number

    def left(self, state: int) -> Left:
        return self._left[state]

    def changed(self, state: int, left: Left) -> int:
        """Return the state of the same layout with that much left of each card."""
        return self.number(self._layout[state], left)

    def step(self, state: int, shape: ReplicaShape) -> CardAllocation | None:
        """Return what serving the request does; None if the state cannot serve it."""
        key = (state, shape.cards, shape.share)
        if key not in self._steps:
            self._steps[key] = self._allocate_from_state(state, shape)
        return self._steps[key]

    def after_release(self, state: int, positions: tuple[int, ...], share: int) -> int:
        """Return the state after that much of each of those cards was released."""
        key = (state, positions, share)
        number = self._after_release.get(key)
        if number is None:
            left = list(self._left[state])
            for position in positions:
                left[position] = min(WHOLE_CARD, left[position] + share)
            number = self._after_release[key] = self.changed(state, tuple(left))
        return number

    # -- Tables over all states that are known by now; positions are states' numbers. --

    @property
    def lefts(self) -> NDArray[np.int32]:
        """[states, width]: what is left of each card, in thousandths; 0 where there is none."""
        return self._lefts[: len(self)]

    def fits(self, shape: ReplicaShape) -> NDArray[np.bool_]:
        """[states]: whether the cards of the request can be allocated."""
        if shape.shares:
            return self._most[: len(self)] >= shape.share
        if shape.cards > self.width:
            return np.zeros(len(self), dtype=np.bool_)
        return self._gives[: len(self), shape.cards]

    def after(self, states: NDArray[np.int32], shape: ReplicaShape) -> NDArray[np.int32]:
        """The state after serving the request, of each of those states; -1 where it cannot be served."""
        table = self._table_of_shape(self._next, shape)
        after = table[states]
        unknown = after == _UNKNOWN
        if not unknown.any():
            return after
        for state in np.unique(states[unknown]):
            step = self.step(int(state), shape)
            table[state] = -1 if step is None else step.to
        return table[states]

    def replica_counts(self, states: NDArray[np.int32], shape: ReplicaShape) -> NDArray[np.int32]:
        """How many requests for so many cards each of those states can serve, one after the other."""
        table = self._table_of_shape(self._replica_counts, shape)
        replica_counts = table[states]
        unknown = replica_counts == _UNKNOWN
        if not unknown.any():
            return replica_counts
        for state in np.unique(states[unknown]):
            table[state] = self._count_served_replicas(int(state), shape)
        return table[states]

    def _table_of_shape(
        self, tables: dict[tuple[int, int], NDArray[np.int32]], shape: ReplicaShape
    ) -> NDArray[np.int32]:
        """The table of that request, with room for every state."""
        key = (shape.cards, shape.share)
        table = tables.get(key, _NOTHING)
        if len(table) < len(self):
            table = tables[key] = _grow_table(table, fill=_UNKNOWN, room=2 * len(self))
        return table

    def _add_state(self, key: tuple[int, Left]) -> int:
        layout, left = key
        number = self._numbers[key] = len(self._left)
        self._layout.append(layout)
        self._left.append(left)
        if number >= len(self._most):
            room = max(64, 2 * number)
            self._most = _grow_table(self._most, room=room)
            self._gives = _grow_table(self._gives, room=room)
            self._lefts = _grow_table(self._lefts, room=room)
        self._most[number] = max(left, default=0)
        self._lefts[number, : len(left)] = left
        self._gives[number] = self._satisfiable_card_counts(layout, left)
        return number

    def _satisfiable_card_counts(self, layout: int, left: Left) -> NDArray[np.bool_]:
        """[width + 1]: which numbers of whole cards the state gives out together."""
        indices, geometry = self._layouts[layout]
        free = [index for index, rest in zip(indices, left, strict=True) if rest == WHOLE_CARD]
        given = np.zeros(self.width + 1, dtype=np.bool_)
        given[0] = True
        if geometry.plain:
            given[: len(free) + 1] = True
        else:
            for count in range(1, len(free) + 1):
                given[count] = choose_cards(free, count, geometry) is not None
        return given

    def _allocate_from_state(self, state: int, shape: ReplicaShape) -> CardAllocation | None:
        if not shape.cards:
            return CardAllocation((), state)
        left = self._left[state]
        layout = self._layout[state]
        positions = (
            _fullest_fitting_card(left, shape.share)
            if shape.shares
            else _choose_whole_cards(left, shape.cards, self._layouts[layout])
        )
        if positions is None:
            return None
        rest = list(left)
        for position in positions:
            rest[position] -= shape.share
        return CardAllocation(positions, self.number(layout, tuple(rest)))

    def _count_served_replicas(self, state: int, shape: ReplicaShape) -> int:
        """:raises ValueError: if it asks for no cards; then there is no end to it."""
        if not shape.cards:
            raise ReasonedValueError(
                "claim.request.no_cards", "the request has no cards, so any number of replicas fits"
            )
        served = 0
        while (step := self.step(state, shape)) is not None:
            state = step.to
            served += 1
        return served


def _fullest_fitting_card(left: Left, share: int) -> tuple[int, ...] | None:
    """The fullest card on which the share still fits, so that whole cards stay whole."""
    fitting = [(rest, position) for position, rest in enumerate(left) if rest >= share]
    return (min(fitting)[1],) if fitting else None


def _choose_whole_cards(left: Left, cards: int, layout: CardLayout) -> tuple[int, ...] | None:
    free = {
        index: position
        for position, (index, rest) in enumerate(zip(layout.indices, left, strict=True))
        if rest == WHOLE_CARD
    }
    chosen = choose_cards(tuple(free), cards, layout.geometry)
    return None if chosen is None else tuple(free[index] for index in chosen)


def _grow_table(table: NDArray[Number], *, room: int, fill: int = 0) -> NDArray[Number]:
    """The same rows, and below them new ones."""
    grown = np.full((room, *table.shape[1:]), fill, dtype=table.dtype)
    grown[: len(table)] = table
    return grown
