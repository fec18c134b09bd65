"""What simulated processes report and print."""

from __future__ import annotations

from datetime import timedelta

import pytest

from controlplane.domain.simulation import courses, curves, outputs
from controlplane.domain.simulation.lives import life
from controlplane.domain.simulation.troubles import Trouble, TroubleKind
from tests.unit.domain.simulation.lived import RECORD, after, record

ASKED = courses.Asked(
    name="attempt-1", role="trainer", cards=8, peak_tokens=160_000, reports=True, labels={}
)
MIX = courses.Mix()


def text_at(minutes: float) -> bytes:
    return curves.text(life(RECORD, (), after(minutes=minutes)), role="trainer", index=0)


def test_a_log_says_first_that_it_is_simulated() -> None:
    assert b"simulated cluster: no program runs" in text_at(3).splitlines()[0]


def test_a_log_only_grows() -> None:
    earlier = b""
    for minutes in range(0, 70, 3):
        now = text_at(minutes)
        assert now.startswith(earlier)
        earlier = now
    assert earlier.endswith(b"done\n")


def test_points_go_on_where_the_last_ones_ended() -> None:
    half, whole = (life(RECORD, (), after(minutes=minutes)) for minutes in (30, 62))
    first = curves.points(half, after=0)
    rest = curves.points(whole, after=curves.step_of(half))
    assert first + rest == curves.points(whole, after=0)


def test_a_loss_falls_and_the_last_step_is_the_last() -> None:
    points = [
        point
        for point in curves.points(life(RECORD, (), after(minutes=62)), after=0)
        if "step" in point
    ]
    assert points[-1]["step"] == points[-1]["total_steps"] == RECORD.course.steps
    assert points[-1]["loss"] < points[0]["loss"]
    assert [point for point in points if "eval_loss" in point]


def test_a_slow_card_shows_in_the_throughput() -> None:
    quick = record({"tokens_per_second": 9000.0})
    slow = Trouble(
        kind=TroubleKind.CARD_SLOW, node="n1", card=0, since=after(minutes=30), slowness=3.0
    )
    points = [
        point
        for point in curves.points(
            life(quick, (slow,), after(minutes=60)), after=0, troubles=(slow,)
        )
        if "step" in point
    ]
    assert points[-1]["tokens_per_second"] < points[0]["tokens_per_second"] / 2


def test_what_was_stopped_goes_on_where_it_saved() -> None:
    stopped = record(reports=True, stop_at=after(minutes=32), kill_at=after(minutes=40))
    lived = life(stopped, (), after(hours=1))
    assert curves.checkpointed(lived) == pytest.approx(1810, abs=1)


def test_what_failed_goes_on_from_its_last_checkpoint() -> None:
    failed = record({"exit_code": 1, "runs": 1700})
    assert curves.checkpointed(life(failed, (), after(hours=1))) == pytest.approx(1350)


def test_the_same_launch_always_takes_the_same_course() -> None:
    assert courses.course_of(ASKED, seed=1, mix=MIX) == courses.course_of(ASKED, seed=1, mix=MIX)
    assert courses.course_of(ASKED, seed=2, mix=MIX) != courses.course_of(ASKED, seed=1, mix=MIX)


def test_labels_say_the_course_outright() -> None:
    said = {f"{courses.PREFIX}run-seconds": "90", f"{courses.PREFIX}exit-code": "3"}
    asked = courses.Asked(
        name="a", role="trainer", cards=1, peak_tokens=1, reports=False, labels=said
    )
    course = courses.course_of(asked, seed=1, mix=MIX)
    assert (course.runs, course.exit_code, course.prepares) == (90, 3, 0)


@pytest.mark.parametrize("said", ["soon", "-1", "nan", "inf"])
def test_a_label_that_says_no_course_is_refused(said: str) -> None:
    asked = courses.Asked(
        name="a",
        role="trainer",
        cards=1,
        peak_tokens=1,
        reports=False,
        labels={f"{courses.PREFIX}run-seconds": said},
    )
    with pytest.raises(courses.CourseRefused, match=r"run-seconds is a number from 0, got"):
        courses.course_of(asked, seed=1, mix=MIX)


def test_about_as_many_trainings_fail_as_is_usual() -> None:
    drawn = [
        courses.course_of(
            courses.Asked(
                name=f"attempt-{number}",
                role="trainer",
                cards=8,
                peak_tokens=1,
                reports=True,
                labels={},
            ),
            seed=1,
            mix=courses.Mix(failing=0.1),
        )
        for number in range(2000)
    ]
    failing = sum(course.exit_code != 0 for course in drawn) / len(drawn)
    assert 0.08 < failing < 0.12


def test_a_good_end_hands_over_what_its_role_makes() -> None:
    lived = life(record(reports=True), (), after(minutes=62) + timedelta(seconds=1))
    kind, files, metrics = outputs.made(lived, role="trainer")
    assert (kind, set(files)) == ("model", {"README.md", "config.json", "model.safetensors"})
    assert metrics["loss"] > 0
    assert b"there are no weights" in files["README.md"]
