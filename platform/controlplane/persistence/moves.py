"""Steps of state machines: a compare-and-swap and an append-only row, together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Generic, TypeVar

from django.db import models, transaction

from controlplane.domain.machines import IllegalTransition, Machine
from controlplane.persistence.models import Transition
from controlplane.persistence.pipelines import pipelined
from controlplane.persistence.updates import insert_each, update_each

State = TypeVar("State", bound=StrEnum)
Event = TypeVar("Event", bound=StrEnum)
Row = TypeVar("Row", bound=models.Model)


class LeaseLost(Exception):
    """Somebody else works on this row now; nothing was written."""


def move(
    entity: models.Model,
    machine: Machine[State, Event],
    event: Event,
    *,
    into: type[Transition],
    at: datetime,
    reason: str = "",
    actor: str = "",
    lease_token: int | None = None,
    **changes: Any,
) -> State:
    """Apply ``event`` to ``entity.state`` and record the move; give back the new state.

    The entity's Python object is updated as well. Further columns to write in the same statement are
    given as keyword arguments.

    :raises IllegalTransition: if the table has no such arrow from the state the row is really in.
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
            raise _why_not(entity, machine, event, lease_token=lease_token)
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
class Step(Generic[Row]):
    """One of many rows that make the same move at once."""

    row: Row
    reason: str
    #: Further columns to write; the same ones for all rows.
    changes: Mapping[str, Any] = field(default_factory=dict)


def move_each(
    steps: Sequence[Step[Row]],
    machine: Machine[State, Event],
    event: Event,
    *,
    into: type[Transition],
    at: datetime,
    leased: bool = False,
    locked: bool = False,
) -> None:
    """``move`` for many rows in three statements: all of them, or none.

    The Python objects are updated as well.

    :param leased: each has to be leased still with the ``lease_token`` that its object has.
    :param locked: the transaction has locked all of them and read the objects since; says nothing of leases.
    :raises IllegalTransition: if the table has no such arrow from the state that one of them is really in.
    :raises LeaseLost: if one of them is leased by somebody else now.
    :raises ValueError: if they are to be leased, and locked.
    """
    if leased and locked:
        raise ValueError("rows that are locked already are not asked for their leases")
    if not steps:
        return
    rows = [step.row for step in steps]
    # Whoever has locked them takes all back if this fails.
    with transaction.atomic(savepoint=not locked):
        if locked:
            state_of = {row.pk: str(row.serializable_value("state")) for row in rows}
        else:
            state_of = _locked(rows, leased=leased)
        transitions = []
        for step in steps:
            current: State = type(machine.initial)(state_of[step.row.pk])
            target = machine.after(current, event)
            for name, value in {"state": target, **step.changes}.items():
                setattr(step.row, name, value)
            transitions.append(
                into(
                    **{into.entity_field: step.row},
                    from_state=current,
                    event=event,
                    to_state=target,
                    reason=step.reason,
                    at=at,
                )
            )
        with pipelined():
            update_each(rows, ("state", *steps[0].changes))
            insert_each(transitions)


def _locked(rows: Sequence[models.Model], *, leased: bool) -> dict[Any, str]:
    """Lock the rows; the states that they are really in, by primary key.

    :raises LeaseLost: if one of them should be leased as its object says and is not.
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


def _why_not(
    entity: models.Model,
    machine: Machine[State, Event],
    event: Event,
    *,
    lease_token: int | None,
) -> Exception:
    """The row changed under us: say what it is now."""
    rows = type(entity)._default_manager.filter(pk=entity.pk)
    if lease_token is not None and rows.exclude(lease_token=lease_token).exists():
        return LeaseLost(f"the {machine.name} is being worked on by somebody else")
    actual = rows.values_list("state", flat=True).first()
    return IllegalTransition(machine=machine.name, state=actual or "deleted", event=event)
