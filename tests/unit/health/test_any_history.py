"""Any history of faults: the guards hold, nothing is done twice, and no fault is forgotten."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from random import Random

from hypothesis import example, given, settings
from hypothesis import strategies as st

from controlplane.domain.common.accelerators import CardState
from controlplane.domain.common.reasons import Reason
from controlplane.domain.health.faults import FaultLevel, SignalOrigin
from controlplane.domain.health.snapshots import (
    DecisionPolicy,
    FaultView,
    HealthAction,
    HealthDecision,
    HealthSnapshot,
    NodeView,
)
from tests.properties import examples
from tests.unit.health.snapshots import NOW, ago, applied, decided, fault, node, silence

ORIGINS = [SignalOrigin.EXPORTER, SignalOrigin.EVENT, SignalOrigin.RULE, SignalOrigin.JOB]


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    nodes: tuple[NodeView, ...]
    policy: DecisionPolicy
    #: What comes up in each turn, and which of all so far ends: index into what stands then.
    reports: tuple[tuple[int, tuple[FaultView, ...], tuple[int, ...]], ...]


@st.composite
def faults(draw: st.DrawFn, nodes: Sequence[NodeView], at: datetime, number: int) -> FaultView:
    view = draw(st.sampled_from(nodes))
    began_at = at - timedelta(seconds=draw(st.integers(0, 90)))
    if draw(st.integers(0, 5)) == 0:
        return replace(silence(view.uid, began_at=began_at), uid=f"{number}", reported_at=at)
    place = draw(st.sampled_from([view.uid, *(card.uid for card in view.cards)]))
    level = draw(st.sampled_from(FaultLevel))
    origin = draw(st.sampled_from(ORIGINS))
    return fault(place, level, uid=f"{number}", code=f"c{level}", origin=origin, began_at=began_at)


@st.composite
def fleets(draw: st.DrawFn, *, most: int = 20) -> tuple[NodeView, ...]:
    cards = draw(st.integers(1, 8 if most > 2 else 2))
    return tuple(
        node(
            f"n{number}",
            cards=cards,
            cluster=draw(st.sampled_from(["east", "west"])),
            pool=draw(st.sampled_from(["p", "q"])),
            keeper=draw(st.sampled_from(["", "", "", "NVSentinel"])),
            binds_by_node=draw(st.integers(0, 4)) == 0,
        )
        for number in range(draw(st.integers(1, most)))
    )


POLICIES = st.builds(
    DecisionPolicy,
    pool_share=st.just(0) | st.integers(1, 500),
    nodes_per_window=st.integers(1, 6),
    restarts_per_window=st.integers(1, 6),
    cards_per_node=st.integers(2, 4),
    stall_share=st.integers(100, 1000),
    min_occurrences=st.integers(2, 4),
)


@st.composite
def histories(draw: st.DrawFn) -> History:
    nodes = draw(fleets())
    reports, at, number = [], NOW, 0
    for _ in range(draw(st.integers(1, 6))):
        pause = draw(st.sampled_from([0, 5, 30, 400, 700]))
        at += timedelta(seconds=pause)
        new = []
        for _ in range(draw(st.integers(0, 8))):
            new.append(draw(faults(nodes, at, number)))
            number += 1
        ends = draw(st.lists(st.integers(0, max(0, number - 1)), max_size=3))
        reports.append((pause, tuple(new), tuple(ends)))
    return History(nodes=nodes, policy=draw(POLICIES), reports=tuple(reports))


def lived(history: History) -> list[tuple[datetime, HealthSnapshot, tuple[HealthDecision, ...]]]:
    """Each turn: when, what was seen, and what was decided about it; all that may be done is done."""
    seen = HealthSnapshot(nodes={view.uid: view for view in history.nodes}, faults=())
    at, reconciliations = NOW, []
    for pause, new, ends in history.reports:
        at += timedelta(seconds=pause)
        stand = [
            replace(each, ended_at=at) if int(each.uid) in ends and each.ended_at is None else each
            for each in seen.faults
        ]
        seen = replace(seen, faults=(*stand, *new))
        found = decided(seen, history.policy, at)
        reconciliations.append((at, seen, found))
        seen = applied(seen, found, at)
    reconciliations.append((at, seen, decided(seen, history.policy, at)))
    return reconciliations


def is_out(state: CardState) -> bool:
    return state in {CardState.NO_NEW_WORK, CardState.ISOLATED}


@given(histories())
@settings(max_examples=examples(80))
def test_no_history_takes_more_out_than_the_policy_allows(history: History) -> None:
    for _, seen, _ in lived(history):
        for pool in ("p", "q"):
            nodes = [view for view in seen.nodes.values() if view.pool == pool]
            size = sum(len(view.cards) for view in nodes)
            out = {view.uid: sum(is_out(card.state) for card in view.cards) for view in nodes}
            share = history.policy.pool_share
            allowed = max(1, size * share // 1000) if share else 0
            # One node may always go, whatever its size: then nothing of the pool is out elsewhere.
            alone = [uid for uid, cards in out.items() if cards]
            assert sum(out.values()) <= allowed or (share and len(alone) == 1)


@given(histories())
@settings(max_examples=examples(80))
def test_no_history_touches_more_nodes_within_the_window_than_the_policy_allows(
    history: History,
) -> None:
    policy = history.policy
    for at, seen, _ in lived(history):
        since = at - policy.window
        assert len({uid for uid, then in seen.recent if then > since}) <= policy.nodes_per_window
        restarts = {uid for uid, then in seen.restarted if then > since}
        assert len(restarts) <= policy.restarts_per_window


@given(histories())
@settings(max_examples=examples(80))
def test_nothing_is_done_twice_and_no_target_gets_two_answers_in_a_turn(history: History) -> None:
    done: set[tuple[str, HealthAction]] = set()
    for _, _, found in lived(history):
        answers = [(each.node, each.card) for each in found if not each.held_back]
        assert len(answers) == len(set(answers))
        for each in found:
            if not each.held_back:
                assert (each.fault, each.action) not in done
                done.add((each.fault, each.action))


#: A node that is silent and has an older fault of its own, and a policy that isolates nothing by itself: both
#: faults ask to isolate the node, and one statement about the node stands for both.
TWO_REASONS_HELD_BACK = History(
    nodes=(node("n0", cards=1), node("n1", cards=1)),
    policy=DecisionPolicy(pool_share=0),
    reports=(
        (
            0,
            (
                replace(silence("n0", began_at=ago(seconds=15)), uid="0", reported_at=NOW),
                fault("n0", FaultLevel.ISOLATE, uid="1", began_at=ago(seconds=16)),
            ),
            (),
        ),
    ),
)


@given(histories())
@example(TWO_REASONS_HELD_BACK)
@settings(max_examples=examples(80))
def test_every_fault_is_answered_or_held_back_in_the_end(history: History) -> None:
    at, seen, found = lived(history)[-1]
    for _ in range(len(seen.faults) + 1):
        seen = applied(seen, found, at)
        found = decided(seen, history.policy, at)
    assert all(each.held_back for each in found)
    held = {each.fault for each in found}
    stalled = {
        seen.nodes[each.node].cluster
        for each in found
        if isinstance(each.held_back, Reason)
        and each.held_back.code == "health.cluster.mass_staleness"
    }
    for each in seen.faults:
        live = each.ended_at is None or each.ended_at >= at - history.policy.settle
        if not live or each.uid in seen.decided or each.uid in held:
            continue
        if each.origin == SignalOrigin.SILENCE:
            assert (
                is_answered_silence(seen, each, stalled, at, history.policy)
                # Each target has one statement: the oldest reason to isolate the node stands for all.
                or any(
                    other.node == each.node and other.action is HealthAction.ISOLATE_NODE
                    for other in found
                )
            ), each
        else:
            # Something as strong or stronger is held back for the same card, or for its node.
            assert any(
                other.node == each.node and other.card in {"", each.card} for other in found
            ), each


def is_answered_silence(
    seen: HealthSnapshot, each: FaultView, stalled: set[str], at: datetime, policy: DecisionPolicy
) -> bool:
    """It is over, too young, part of a stall, told by another fault of the node, or the node is out."""
    view = seen.nodes[each.node]
    return (
        each.ended_at is not None
        or each.began_at > at - policy.heartbeat_timeout
        or view.cluster in stalled
        or any(
            other.node == each.node
            and other.origin == SignalOrigin.SILENCE
            and other.uid != each.uid
            for other in seen.faults
        )
        or all(card.state is CardState.ISOLATED for card in view.cards)
    )


@given(histories(), st.randoms(use_true_random=False))
@settings(max_examples=examples(80))
def test_the_order_in_which_things_are_told_changes_nothing(
    history: History, random: Random
) -> None:
    at, seen, found = lived(history)[-1]
    faults, nodes = list(seen.faults), list(seen.nodes.items())
    random.shuffle(faults)
    random.shuffle(nodes)
    shuffled = replace(seen, faults=tuple(faults), nodes=dict(nodes))
    assert decided(shuffled, history.policy, at) == found


@given(fleets(most=2), st.data())
@settings(max_examples=examples(200))
def test_a_further_fault_never_protects_a_card_less_where_no_guard_holds(
    nodes: tuple[NodeView, ...], data: st.DataObject
) -> None:
    open_policy = DecisionPolicy(
        pool_share=1000,
        nodes_per_window=1000,
        restarts_per_window=1000,
        stall_share=1001,
        cards_per_node=3,
    )
    views = {f"x{n}": node(f"x{n}", cluster=c) for n, c in enumerate(["east", "west"])}
    some = [data.draw(faults(nodes, NOW, number)) for number in range(data.draw(st.integers(0, 8)))]
    further = data.draw(faults(nodes, NOW, 99))
    both = {**{view.uid: view for view in nodes}, **views}
    before = decided(HealthSnapshot(nodes=both, faults=tuple(some)), open_policy)
    after = decided(HealthSnapshot(nodes=both, faults=(*some, further)), open_policy)
    for view in nodes:
        for card in view.cards:
            assert strength(after, view.uid, card.uid) >= strength(before, view.uid, card.uid)


def strength(found: Sequence[HealthDecision], node_uid: str, card: str) -> int:
    """How much is done to the card, by itself or with its node."""
    return max(
        (
            min(each.action.rank, HealthAction.ISOLATE_CARD.rank)
            for each in found
            if each.node == node_uid and each.card in {"", card} and not each.held_back
        ),
        default=-1,
    )


@given(st.integers(2, 60), st.data())
@settings(max_examples=examples(60))
def test_a_stall_takes_nothing_out(nodes: int, data: st.DataObject) -> None:
    views = {f"n{n}": node(f"n{n}") for n in range(nodes)}
    policy = DecisionPolicy()
    least = max(2, -(-nodes * policy.stall_share // 1000))
    stale = data.draw(st.sets(st.integers(0, nodes - 1), min_size=min(least, nodes)))
    age = timedelta(seconds=data.draw(st.integers(15, 100_000)))
    seen = HealthSnapshot(
        nodes=views, faults=tuple(silence(f"n{n}", began_at=NOW - age) for n in sorted(stale))
    )
    found = decided(seen, policy)
    assert [bool(each.held_back) for each in found] == [True]
