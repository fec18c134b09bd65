"""Crashed jobs make a place suspect where the same jobs run well elsewhere; broken programs make none."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.domain.common.accelerators import CardState
from controlplane.domain.health.faults import FaultLevel, SignalOrigin
from controlplane.domain.health.snapshots import (
    AttemptRunView,
    CrashOrigin,
    DecisionPolicy,
    HealthAction,
    HealthSnapshot,
)
from controlplane.domain.health.suspicions import suspicious_nodes
from tests.properties import examples
from tests.unit.health.snapshots import (
    NOW,
    ago,
    applied,
    decided,
    fault,
    fleet,
    health_snapshot,
    node,
    only,
    withheld,
)


def run(
    job: str,
    *places: str,
    owner: str = "",
    failed: CrashOrigin | None = CrashOrigin.UNCLEAR,
    ended_at: datetime = NOW,
) -> AttemptRunView:
    """An attempt on whole nodes, such as ``n0``, or on cards, such as ``n0-3``. Each job has its own owner."""
    held: dict[str, list[str]] = {}
    for place in places:
        name, _, number = place.partition("-")
        held.setdefault(name, []).extend([place] if number else [f"{name}-{n}" for n in range(8)])
    return AttemptRunView(
        job=job,
        owner=owner or job,
        places={name: tuple(cards) for name, cards in held.items()},
        ended_at=ended_at,
        failed=failed,
    )


def seen(*runs: AttemptRunView) -> HealthSnapshot:
    return replace(health_snapshot(fleet(40)), runs=runs)


def moved(job: str, bad: str, good: str, owner: str = "") -> tuple[AttemptRunView, AttemptRunView]:
    """A job that crashed in one place and then ended well in another."""
    return (
        run(job, bad, ended_at=ago(hours=2), owner=owner),
        run(job, good, failed=None, ended_at=ago(hours=1), owner=owner),
    )


def test_two_jobs_that_crashed_here_and_ended_well_elsewhere_make_a_node_suspect() -> None:
    found = only(decided(seen(*moved("a", "n0", "n1"), *moved("b", "n0", "n2"))))
    assert (found.node, found.card, found.action) == ("n0", "", HealthAction.RESET_WHEN_IDLE)
    assert found.reason == (
        "2 of 2 jobs crashed here, of which 2 succeeded elsewhere; suspicion score 2.0"
    )


def test_one_such_job_is_not_enough_however_often_it_crashed_here() -> None:
    crashes = [run("a", "n0", ended_at=ago(hours=n)) for n in range(2, 9)]
    assert decided(seen(*crashes, run("a", "n1", failed=None))) == ()


def test_crashes_with_one_card_in_common_point_at_the_card() -> None:
    found = only(
        decided(
            seen(
                run("a", "n0-0", "n0-1", ended_at=ago(hours=3)),
                run("a", "n1-0", "n1-1", failed=None),
                run("b", "n0-1", "n0-2", ended_at=ago(hours=3)),
                run("b", "n2-0", "n2-1", failed=None),
            )
        )
    )
    assert (found.card, found.action) == ("n0-1", HealthAction.RESET_WHEN_IDLE)


def test_a_card_where_another_job_ended_well_is_not_the_one() -> None:
    found = only(
        decided(
            seen(
                run("a", "n0-0", "n0-1", ended_at=ago(hours=3)),
                run("a", "n1-0", failed=None),
                run("b", "n0-0", "n0-1", ended_at=ago(hours=3)),
                run("b", "n2-0", failed=None),
                run("c", "n0-0", "n0-1", ended_at=ago(hours=3)),
                run("c", "n3-0", failed=None),
                run("d", "n0-0", failed=None),
            )
        )
    )
    assert found.card == "n0-1"


def test_a_gang_that_ran_again_without_one_node_points_at_that_node() -> None:
    crashed = [
        run(f"j{n}", "n0", f"n{2 * n + 1}", f"n{2 * n + 2}", ended_at=ago(hours=2))
        for n in range(3)
    ]
    well = [run(f"j{n}", "n20", f"n{2 * n + 1}", f"n{2 * n + 2}", failed=None) for n in range(3)]
    assert only(decided(seen(*crashed, *well))).node == "n0"


def test_a_node_where_the_same_jobs_ended_well_is_not_in_question() -> None:
    crashed = [run(job, "n0", "n1", ended_at=ago(hours=2)) for job in ("a", "b")]
    well = [run(job, "n1", "n2", failed=None) for job in ("a", "b")]
    assert only(decided(seen(*crashed, *well))).node == "n0"


def test_nodes_that_are_in_question_together_share_the_blame() -> None:
    crashed = [run(job, "n0", "n1", ended_at=ago(hours=2)) for job in ("a", "b")]
    well = [run(job, "n2", failed=None) for job in ("a", "b")]
    assert decided(seen(*crashed, *well)) == ()


def test_a_node_where_most_work_ends_well_is_not_suspect() -> None:
    good = [run(f"well{n}", "n0", failed=None, ended_at=ago(hours=3)) for n in range(8)]
    assert decided(seen(*moved("a", "n0", "n1"), *moved("b", "n0", "n2"), *good)) == ()


def test_a_script_of_one_owner_that_fails_everywhere_makes_nothing_suspect() -> None:
    runs = [
        run(
            f"j{n}",
            f"n{n % 40}",
            owner="anna",
            failed=CrashOrigin.HARDWARE,
            ended_at=ago(minutes=n),
        )
        for n in range(200)
    ]
    assert decided(seen(*runs)) == ()


def test_nor_does_one_that_fails_always_on_the_only_free_node() -> None:
    runs = [run(f"j{n}", "n0", owner="anna", failed=CrashOrigin.HARDWARE) for n in range(50)]
    assert decided(seen(*runs)) == ()


def test_nor_does_a_flaky_one_that_ends_well_at_last() -> None:
    runs = [each for n in range(80) for each in moved(f"j{n}", f"n{n % 20}", "n30", owner="anna")]
    assert decided(seen(*runs)) == ()


def test_what_a_program_did_to_itself_weighs_nothing_even_if_it_ended_well_elsewhere() -> None:
    runs = [
        each
        for n in range(9)
        for each in (
            run(f"j{n}", "n0", failed=CrashOrigin.PROGRAM, ended_at=ago(hours=1)),
            run(f"j{n}", "n1", failed=None),
        )
    ]
    assert decided(seen(*runs)) == ()


def test_crashes_of_four_owners_that_blame_the_hardware_are_enough_without_an_end_elsewhere() -> (
    None
):
    runs = [run(f"j{n}", "n0", failed=CrashOrigin.HARDWARE) for n in range(4)]
    assert only(decided(seen(*runs))).node == "n0"
    assert decided(seen(*runs[:3])) == ()


def test_what_is_out_already_is_not_suspected_again() -> None:
    suspect = seen(*moved("a", "n0", "n1"), *moved("b", "n0", "n2"))
    found = decided(suspect)
    assert decided(applied(suspect, found)) == ()


def test_crashes_before_it_was_given_back_are_dealt_with() -> None:
    suspect = seen(*moved("a", "n0", "n1"), *moved("b", "n0", "n2"))
    assert decided(replace(suspect, released={"n0-4": ago(minutes=90)})) == ()


def test_crashes_of_the_day_before_yesterday_do_not_count() -> None:
    runs = [*moved("a", "n0", "n1"), *moved("b", "n0", "n2")]
    old = [replace(each, ended_at=ago(hours=30)) for each in runs]
    assert decided(seen(*old)) == ()


def test_the_fault_that_a_crash_left_stands_behind_the_suspicion() -> None:
    left = fault(
        "n0", FaultLevel.RESTART_JOB, origin=SignalOrigin.JOB, code="nccl-timeout", uid="left"
    )
    suspect = seen(*moved("a", "n0", "n1"), *moved("b", "n0", "n2"))
    assert only(decided(replace(suspect, faults=(left,)))).fault == "left"


def test_where_the_plug_in_chooses_the_card_the_node_is_suspect_as_a_whole() -> None:
    nodes = {**fleet(40), "n0": node("n0", binds_by_node=True)}
    runs = (*moved("a", "n0-1", "n1-0"), *moved("b", "n0-1", "n2-0"))
    found = only(decided(replace(health_snapshot(nodes), runs=runs)))
    assert found.card == ""


def test_a_keeper_is_followed_in_suspicion_too() -> None:
    nodes = {**fleet(40), "n0": node("n0", keeper="MindCluster")}
    runs = (*moved("a", "n0", "n1"), *moved("b", "n0", "n2"))
    assert only(decided(replace(health_snapshot(nodes), runs=runs))).followed


def test_the_cards_left_of_a_suspect_node_are_withheld_too() -> None:
    nodes = fleet(40)
    nodes["n0"] = withheld(nodes["n0"], CardState.NO_NEW_WORK, "n0-0")
    runs = (*moved("a", "n0", "n1"), *moved("b", "n0", "n2"))
    assert only(decided(replace(health_snapshot(nodes), runs=runs))).card == ""


@given(st.data())
@settings(max_examples=examples(60))
def test_no_owner_alone_makes_a_place_suspect_without_an_end_elsewhere(data: st.DataObject) -> None:
    runs = tuple(
        run(
            f"j{data.draw(st.integers(0, 30))}",
            *sorted(data.draw(st.sets(st.sampled_from([f"n{n}" for n in range(6)]), min_size=1))),
            owner="anna",
            failed=data.draw(st.sampled_from(CrashOrigin)),
            ended_at=ago(minutes=data.draw(st.integers(0, 600))),
        )
        for _ in range(data.draw(st.integers(0, 25)))
    )
    assert suspicious_nodes(seen(*runs), DecisionPolicy(), NOW) == ()
