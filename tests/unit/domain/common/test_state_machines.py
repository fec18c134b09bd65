"""Every machine as the full event × state product: what is not in these tables must be illegal.

The tables are written out again, in the order of the diagrams, so that a changed arrow fails here.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from itertools import product
from typing import Any

import pytest

from controlplane.domain.common.state_machine import IllegalTransition, StateMachine
from controlplane.domain.jobs.lifecycle import ATTEMPT, ENDED_JOB_STATES, JOB, LIVE_ATTEMPT_STATES
from controlplane.domain.pipelines.lifecycle import PIPELINE, STEP
from controlplane.domain.quotas.claims import CLAIM
from controlplane.domain.registry.versions import MODEL
from controlplane.domain.serving.lifecycle import DEPLOYMENT, REPLICA, WEIGHT_DOWNLOAD
from tests.cases import for_each_case

ARROWS: Mapping[str, str] = {
    "job": """
        waiting start running, waiting fail failed, waiting cancel cancelled,
        running requeue waiting, running succeed succeeded, running fail failed, running cancel cancelled,
        failed retry waiting, cancelled retry waiting
    """,
    "attempt": """
        pending admit admitted, pending withdraw stopped,
        admitted launch launched, admitted stop stopping, admitted fail failed,
        launched run running, launched finish completing, launched stop stopping, launched fail failed,
        running finish completing, running stop stopping, running fail failed,
        stopping confirm stopped,
        completing complete succeeded, completing fail failed
    """,
    "claim": """
        pending admit admitted, pending release released,
        admitted revoke revoking, admitted release released,
        revoking release released
    """,
    "deployment": """
        starting become_ready ready, degraded become_ready ready, updating become_ready ready,
        starting degrade degraded, ready degrade degraded, updating degrade degraded,
        starting change starting, ready change updating, degraded change updating,
        updating change updating,
        starting stop stopping, ready stop stopping, degraded stop stopping, updating stop stopping,
        starting pause starting, ready pause ready, degraded pause degraded, updating pause updating,
        starting resume starting, ready resume ready, degraded resume degraded,
        updating resume updating,
        stopping confirm stopped, stopped start starting
    """,
    "replica": """
        pending admit admitted, admitted launch starting, starting become_ready ready,
        ready become_unready starting,
        admitted crash backoff, starting crash backoff, ready crash backoff,
        backoff restart admitted,
        pending stop stopping, admitted stop stopping, starting stop stopping, ready stop stopping,
        backoff stop stopping, ready drain draining, draining stop stopping, stopping confirm stopped
    """,
    "model version": """
        importing import ready, importing fail failed, failed retry importing,
        ready delete deleted, deleted restore ready,
        ready remove removed, deleted remove removed
    """,
    "pipeline": """
        running succeed succeeded, running hold held, running fail failed, running cancel cancelled,
        held go_on running, held cancel cancelled,
        failed go_on running, cancelled go_on running, succeeded go_on running
    """,
    "weight download": """
        pending launch running, pending fail failed, pending cancel stopping,
        running succeed succeeded, running fail failed, running cancel stopping,
        stopping confirm cancelled
    """,
    "step": """
        waiting begin running, waiting fail failed, waiting skip skipped,
        running succeed succeeded, running miss held, running fail failed, running cancel cancelled,
        held wave succeeded, failed retry waiting, cancelled retry waiting, skipped resume waiting
    """,
}
MACHINES: tuple[StateMachine[Any, Any], ...] = (
    JOB,
    ATTEMPT,
    CLAIM,
    DEPLOYMENT,
    REPLICA,
    WEIGHT_DOWNLOAD,
    MODEL,
    PIPELINE,
    STEP,
)


def states(machine: StateMachine[Any, Any]) -> list[StrEnum]:
    kind: type[StrEnum] = type(machine.initial)
    return list(kind)


def events(machine: StateMachine[Any, Any]) -> list[StrEnum]:
    _, event = next(iter(machine.transitions))
    kind: type[StrEnum] = type(event)
    return list(kind)


def expected(machine: StateMachine[Any, Any]) -> dict[tuple[str, str], str]:
    transitions = (arrow.split() for arrow in ARROWS[machine.name].split(","))
    return {(source, event): target for source, event, target in transitions}


CASES = [
    pytest.param(machine, state, event, id=f"{machine.name}: {state} {event}")
    for machine in MACHINES
    for state, event in product(states(machine), events(machine))
]


@for_each_case(("machine", "state", "event"), CASES)
def test_each_event_at_each_state_does_what_the_table_says(
    machine: StateMachine[Any, Any], state: StrEnum, event: StrEnum
) -> None:
    target = expected(machine).get((state.value, event.value))

    assert machine.allows(state, event) is (target is not None)
    if target is not None:
        assert machine.after(state, event) == target
        return
    with pytest.raises(IllegalTransition) as refused:
        machine.after(state, event)
    assert str(refused.value) == f"a {machine.name} that is {state} cannot {event}"


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
def test_every_state_can_be_reached(machine: StateMachine[Any, Any]) -> None:
    reached = {machine.initial}
    while (
        fresh := {
            target for (source, _), target in machine.transitions.items() if source in reached
        }
        - reached
    ):
        reached |= fresh

    assert reached == set(states(machine))


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
def test_every_event_is_used(machine: StateMachine[Any, Any]) -> None:
    assert {event for _, event in machine.transitions} == set(events(machine))


@pytest.mark.parametrize(
    ("machine", "final"),
    [
        (JOB, {"succeeded"}),
        (ATTEMPT, {"succeeded", "failed", "stopped"}),
        (CLAIM, {"released"}),
        (DEPLOYMENT, set()),
        (REPLICA, {"stopped"}),
        (WEIGHT_DOWNLOAD, {"succeeded", "failed", "cancelled"}),
        (MODEL, {"removed"}),
        (PIPELINE, set()),
        (STEP, {"succeeded"}),
    ],
    ids=lambda value: value.name if isinstance(value, StateMachine) else "",
)
def test_nothing_leads_out_of_a_final_state(
    machine: StateMachine[Any, Any], final: set[str]
) -> None:
    assert machine.final == final
    assert not any(
        machine.allows(state, event)
        for state in machine.final
        for event in {event for _, event in machine.transitions}
    )


@pytest.mark.parametrize(
    "machine",
    [JOB, ATTEMPT, CLAIM, REPLICA, WEIGHT_DOWNLOAD, STEP],
    ids=lambda machine: machine.name,
)
def test_from_every_state_an_end_can_be_reached(machine: StateMachine[Any, Any]) -> None:
    ends = set(ENDED_JOB_STATES) if machine is JOB else set(machine.final)
    able = set(ends)
    while (
        fresh := {source for (source, _), target in machine.transitions.items() if target in able}
        - able
    ):
        able |= fresh

    assert able == set(states(machine))


def test_every_live_attempt_can_be_ended_against_its_will() -> None:
    for state in LIVE_ATTEMPT_STATES - {"stopping"}:
        assert expected(ATTEMPT)[state.value, "stop"] == "stopping"
        assert expected(ATTEMPT)[state.value, "fail"] == "failed"
