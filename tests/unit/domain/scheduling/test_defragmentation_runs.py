"""State machines of defragmentation plans and relocations, and stale plans."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product

import pytest

from controlplane.domain.common.accelerators import CardState
from controlplane.domain.common.resources import Resources
from controlplane.domain.common.state_machine import IllegalTransition
from controlplane.domain.quotas.claims import ClaimState, GangShape, RoleShape
from controlplane.domain.scheduling.defragmentation_runs import (
    DEFRAGMENTATION,
    RELOCATION,
    DefragmentationEvent,
    DefragmentationState,
    RelocationEvent,
    RelocationState,
    RelocationStatus,
    assign_cards_to_relocations,
    preview_relocated_nodes,
    relocation_blockers,
    relocation_event,
)
from controlplane.domain.scheduling.relocation import Relocation
from controlplane.domain.scheduling.snapshots import (
    CardSelection,
    CardSnapshot,
    NodeSnapshot,
    ReplicaPlacement,
    RunningClaim,
    SchedulingSnapshot,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CARDS = 4


def node(name: str, *, held: dict[int, str] | None = None, **changes: object) -> NodeSnapshot:
    held = held or {}
    cards = tuple(
        CardSnapshot(
            uid=f"{name}/{index}",
            index=index,
            chip="gpu",
            state=CardState.USABLE,
            held_by=held.get(index),
        )
        for index in range(CARDS)
    )
    view = NodeSnapshot(uid=name, name=name, cluster="c", cards=cards, capacity=Resources())
    return replace(view, **changes)  # type: ignore[arg-type]


def seat(where: str, *indices: int) -> ReplicaPlacement:
    cards = tuple(f"{where}/{index}" for index in indices)
    return ReplicaPlacement(role="run", index=0, node=where, cards=cards, count=len(cards))


def running(uid: str, place: ReplicaPlacement) -> RunningClaim:
    return RunningClaim(
        uid=uid,
        queue="q",
        shape=GangShape(roles=(RoleShape(name="run", replicas=1, cards=place.count),)),
        chip="gpu",
        priority=0,
        admitted_at=NOW,
        replicas=(place,),
        checkpointed_at=NOW,
    )


def move(uid: str, source: ReplicaPlacement, target: ReplicaPlacement) -> Relocation:
    return Relocation(
        claim=uid, chip="gpu", source=(source,), target=(target,), lost=timedelta(0), cost=1.0
    )


#: One on a, one on b; the first goes to b, where the second leaves room by going to c.
FIRST, SECOND = seat("a", 0, 1), seat("b", 0, 1)
MOVES = [
    (1, move("second", SECOND, seat("c", 0, 1))),
    (2, move("first", FIRST, seat("b", 0, 1))),
]


def fleet(**nodes: NodeSnapshot) -> SchedulingSnapshot:
    known = {
        "a": node("a", held={0: "first", 1: "first"}),
        "b": node("b", held={0: "second", 1: "second"}),
        "c": node("c"),
        **nodes,
    }
    work = (running("first", FIRST), running("second", SECOND))
    return SchedulingSnapshot(nodes=tuple(known.values()), claims=(), queues={}, running=work)


@pytest.mark.parametrize(
    ("machine", "events"), [(DEFRAGMENTATION, DefragmentationEvent), (RELOCATION, RelocationEvent)]
)
def test_what_has_ended_stays_as_it_is(machine, events) -> None:  # type: ignore[no-untyped-def]
    assert machine.final
    for state, event in product(machine.final, events):
        with pytest.raises(IllegalTransition):
            machine.after(state, event)


def test_only_an_approved_one_begins() -> None:
    for state in DefragmentationState:
        begins = DEFRAGMENTATION.allows(state, DefragmentationEvent.BEGIN)
        assert begins is (state is DefragmentationState.APPROVED)


@pytest.mark.parametrize(
    ("state", "status", "event"),
    [
        (RelocationState.STOPPING, RelocationStatus(released=False), None),
        (
            RelocationState.STOPPING,
            RelocationStatus(released=True, successor=ClaimState.PENDING),
            RelocationEvent.LEAVE,
        ),
        (RelocationState.STOPPING, RelocationStatus(released=True), RelocationEvent.END),
        (
            RelocationState.STOPPING,
            RelocationStatus(released=False, late=True),
            RelocationEvent.MISS,
        ),
        # What came about is worth more than that it was late.
        (RelocationState.STOPPING, RelocationStatus(released=True, late=True), RelocationEvent.END),
        (
            RelocationState.LANDING,
            RelocationStatus(released=True, successor=ClaimState.PENDING),
            None,
        ),
        (
            RelocationState.LANDING,
            RelocationStatus(released=True, successor=ClaimState.PENDING, late=True),
            RelocationEvent.MISS,
        ),
        (
            RelocationState.LANDING,
            RelocationStatus(released=True, successor=ClaimState.ADMITTED),
            RelocationEvent.LAND,
        ),
        (
            RelocationState.LANDING,
            RelocationStatus(released=True, successor=ClaimState.REVOKING),
            RelocationEvent.LAND,
        ),
        (
            RelocationState.LANDING,
            RelocationStatus(released=True, successor=ClaimState.RELEASED),
            RelocationEvent.END,
        ),
        (RelocationState.PLANNED, RelocationStatus(released=False), None),
    ],
)
def test_a_move_goes_on_by_what_is_seen(
    state: RelocationState, status: RelocationStatus, event: RelocationEvent | None
) -> None:
    assert relocation_event(state, status) is event
    assert event is None or RELOCATION.allows(state, event)


def test_a_later_move_may_go_where_an_earlier_one_leaves() -> None:
    assert relocation_blockers(MOVES, ["a/0", "a/1"], fleet()) == ()
    assert relocation_blockers(MOVES[::-1], [], fleet()) == (
        "relocation 2: cards 0, 1 of b are no longer free",
    )


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        (fleet(c=node("c", held={0: "other"})), "relocation 1: card 0 of c is no longer free"),
        (fleet(c=node("c", schedulable=False)), "relocation 1: node c no longer accepts workloads"),
        (
            fleet(a=node("a", held={0: "first", 1: "first", 2: "other"})),
            "the capacity to free: card 2 of a is no longer free",
        ),
    ],
)
def test_what_is_no_longer_so_is_said_with_its_move(seen: SchedulingSnapshot, said: str) -> None:
    assert relocation_blockers(MOVES, ["a/0", "a/1", "a/2", "a/3"], seen) == (said,)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"revoking": True},
            "relocation 1: the workload is being evicted or can no longer be relocated",
        ),
        (
            {"checkpointed_at": None},
            "relocation 1: the workload is being evicted or can no longer be relocated",
        ),
        (
            {"replicas": (seat("b", 2, 3),)},
            "relocation 1: the workload uses different cards than before",
        ),
    ],
)
def test_work_that_is_not_as_it_was_is_not_moved(changes: dict[str, object], said: str) -> None:
    first, second = fleet().running
    other = replace(second, **changes)  # type: ignore[arg-type]
    assert relocation_blockers(MOVES, [], replace(fleet(), running=(first, other))) == (said,)
    gone = replace(fleet(), running=(first,))
    assert (
        relocation_blockers(MOVES, [], gone)[0] == "relocation 1: the workload has ended or stopped"
    )


def test_cards_that_are_kept_for_it_are_as_good_as_free() -> None:
    nominated = node("c")
    cards = tuple(replace(card, nominated_for="work:second") for card in nominated.cards)
    seen = fleet(c=replace(nominated, cards=cards))
    assert relocation_blockers(MOVES, [], seen)
    assert relocation_blockers(MOVES, [], seen, nominees=["work:second"]) == ()


def test_where_a_plug_in_chooses_any_free_card_stands_for_its_choice() -> None:
    nameless = ReplicaPlacement(role="run", index=0, node="c", cards=(), count=2)
    moves = [replace(MOVES[0][1], target=(nameless,)), replace(MOVES[1][1], target=(nameless,))]
    settled, room = assign_cards_to_relocations(
        moves,
        (ReplicaPlacement(role="", index=0, node="a", cards=(), count=4),),
        fleet(c=node("c", binding=CardSelection.NODE)),
        chip="gpu",
    )
    assert [one.target[0].cards for one in settled] == [("c/0", "c/1"), ("c/2", "c/3")]
    assert room[0].cards == ("a/0", "a/1", "a/2", "a/3")


def test_a_picture_has_every_touched_node_before_and_after() -> None:
    room = (seat("a", 0, 1, 2, 3),)
    a, b, c = preview_relocated_nodes(fleet(), [one for _, one in MOVES], room)
    assert (a.before, a.after) == (("2", "2", "free", "free"), ("free",) * 4)
    assert (b.before, b.after) == (("1", "1", "free", "free"), ("2", "2", "free", "free"))
    assert (c.before, c.after) == (("free",) * 4, ("1", "1", "free", "free"))
    assert a.room == (0, 1, 2, 3)
    assert b.room == c.room == ()
