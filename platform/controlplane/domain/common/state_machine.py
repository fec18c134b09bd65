"""State machines as pure tables.

A machine is a mapping ``(state, event) → state``. What is not in the table is illegal and raises an error that
names the current state. ``controlplane.persistence`` turns one step of a machine into one compare-and-swap and
one append-only row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from controlplane.domain.common.reasons import ReasonedError

State = TypeVar("State", bound=StrEnum)
Event = TypeVar("Event", bound=StrEnum)


class IllegalTransition(ReasonedError):
    """The entity cannot make this transition from its current state."""

    def __init__(self, *, machine: str, state: str, event: str) -> None:
        super().__init__(
            "state.transition_not_allowed",
            "a {machine} that is {state} cannot {event}",
            machine=machine,
            state=state,
            event=event,
        )
        self.machine = machine
        self.state = state
        self.event = event


@dataclass(frozen=True, slots=True, kw_only=True)
class StateMachine(Generic[State, Event]):
    """A named transition table."""

    #: What moves, as a noun in lower case ("job").
    name: str
    initial: State
    transitions: Mapping[tuple[State, Event], State]

    def after(self, state: State, event: Event) -> State:
        """:raises IllegalTransition: if the table has no such arrow."""
        try:
            return self.transitions[state, event]
        except KeyError:
            raise IllegalTransition(machine=self.name, state=state, event=event) from None

    def allows(self, state: State, event: Event) -> bool:
        return (state, event) in self.transitions

    @property
    def final(self) -> frozenset[State]:
        """States that nothing leads out of."""
        sources = {source for source, _ in self.transitions}
        return frozenset(state for state in type(self.initial) if state not in sources)
