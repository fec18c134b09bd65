"""State transitions: a compare-and-swap of the state and an append-only history row, in one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Generic, TypeVar

from django.db import models, transaction

from controlplane.domain.common.reasons import ReasonedError
from controlplane.domain.common.state_machine import IllegalTransition, StateMachine
from controlplane.persistence.bulk_writes import bulk_insert_rows, bulk_update_rows
from controlplane.persistence.models import Transition
from controlplane.persistence.transactions import pipelined_statements

State = TypeVar("State", bound=StrEnum)
Event = TypeVar("Event", bound=StrEnum)
Row = TypeVar("Row", bound=models.Model)


class LeaseLost(ReasonedError):
    """Another worker has the lease of the row; nothing was written."""


def apply_transition(
    entity: models.Model,
    machine: StateMachine[State, Event],
    event: Event,
    *,
    into: type[Transition],
    at: datetime,
    reason: str = "",
    actor: str = "",
    lease_token: int | None = None,
    **changes: Any,
) -> State:
    """Apply ``event`` to ``entity.state`` and record the transition; return the new state.

    The Python object is updated as well. Further columns to write in the same statement are keyword arguments.

    :raises IllegalTransition: if the state machine has no such transition from the current state of the row.
    :raises LeaseLost: if ``lease_token`` is given and no longer the row's.
    """
    current: State = type(machine.initial)(entity.serializable_value("state"))
    target = machine.after(current, event)
    guards: dict[str, Any] = {"pk": entity.pk, "state": current}
    if lease_token is not None:
        guards["lease_token"] = lease_token
    manager = type(entity)._default_manager
    with transaction.atomic():
        if not manager.filter(**guards).update(state=target, **changes):
            raise _transition_conflict_error(entity, machine, event, lease_token=lease_token)
        into._default_manager.create(
            **{into.entity_field: entity},
            from_state=current,
            event=event,
            to_state=target,
            reason=reason,
            actor=actor,
            at=at,
        )
    for name, value in {"state": target, **changes}.items():
        setattr(entity, name, value)
    return target


@dataclass(frozen=True, slots=True, kw_only=True)
class RowTransition(Generic[Row]):
    """One of many rows with the same transition."""

    row: Row
    reason: str
    #: Further columns to write; the same ones for all rows.
    changes: Mapping[str, Any] = field(default_factory=dict)


def apply_transitions(
    row_transitions: Sequence[RowTransition[Row]],
    machine: StateMachine[State, Event],
    event: Event,
    *,
    into: type[Transition],
    at: datetime,
    leased: bool = False,
    locked: bool = False,
) -> None:
    """Apply the same transition to many rows in three statements: all of them, or none.

    The Python objects are updated as well.

    :param leased: check that each row is still leased with the ``lease_token`` of its object.
    :param locked: the transaction has locked the rows and read the objects since; leases are not checked.
    :raises IllegalTransition: if the state machine has no such transition for one of the rows.
    :raises LeaseLost: if another worker has leased one of them.
    :raises ValueError: if both ``leased`` and ``locked`` are set.
    """
    if leased and locked:
        raise ValueError("rows that are locked already are not asked for their leases")
    if not row_transitions:
        return
    rows = [row_transition.row for row_transition in row_transitions]
    # A caller with locks rolls everything back if this fails.
    with transaction.atomic(savepoint=not locked):
        if locked:
            state_of = {row.pk: str(row.serializable_value("state")) for row in rows}
        else:
            state_of = _lock_states(rows, leased=leased)
        transitions = []
        for row_transition in row_transitions:
            current: State = type(machine.initial)(state_of[row_transition.row.pk])
            target = machine.after(current, event)
            for name, value in {"state": target, **row_transition.changes}.items():
                setattr(row_transition.row, name, value)
            transitions.append(
                into(
                    **{into.entity_field: row_transition.row},
                    from_state=current,
                    event=event,
                    to_state=target,
                    reason=row_transition.reason,
                    at=at,
                )
            )
        with pipelined_statements():
            bulk_update_rows(rows, ("state", *row_transitions[0].changes))
            bulk_insert_rows(transitions)


def _lock_states(rows: Sequence[models.Model], *, leased: bool) -> dict[Any, str]:
    """Lock the rows; return their current states by primary key.

    :raises LeaseLost: if the lease of one of them has been lost.
    """
    manager = type(rows[0])._default_manager
    columns = ("pk", "state", "lease_token") if leased else ("pk", "state")
    found = (
        manager.select_for_update(no_key=True)
        .filter(pk__in=[row.pk for row in rows])
        .order_by("pk")
        .values_list(*columns)
    )
    state_of, tokens = dict[Any, str](), dict[Any, list[Any]]()
    for pk, state, *token in found:
        state_of[pk], tokens[pk] = state, token
    if leased and any(tokens[row.pk] != [row.serializable_value("lease_token")] for row in rows):
        raise LeaseLost("somebody else works on one of them now; nothing was written")
    return state_of


def _transition_conflict_error(
    entity: models.Model,
    machine: StateMachine[State, Event],
    event: Event,
    *,
    lease_token: int | None,
) -> Exception:
    """Return the exception for a row that changed concurrently."""
    rows = type(entity)._default_manager.filter(pk=entity.pk)
    if lease_token is not None and rows.exclude(lease_token=lease_token).exists():
        return LeaseLost(f"the {machine.name} is being worked on by somebody else")
    actual = rows.values_list("state", flat=True).first()
    return IllegalTransition(machine=machine.name, state=actual or "deleted", event=event)
