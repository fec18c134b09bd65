"""What simulated processes report and print."""

from __future__ import annotations

from datetime import timedelta

import pytest

from controlplane.domain.simulation import reports, run_profiles
from controlplane.domain.simulation.launch_lifecycle import (
    SimulatedFault,
    SimulatedFaultKind,
    launch_snapshot,
)
from tests.unit.domain.simulation.launches import RECORD, after, record

ASKED = run_profiles.LaunchTraits(
    name="attempt-1", role="trainer", cards=8, peak_tokens=160_000, reports=True, labels={}
)
MIX = run_profiles.WorkloadDistribution()


def text_at(minutes: float) -> bytes:
    return reports.simulated_replica_log(
        launch_snapshot(RECORD, (), after(minutes=minutes)), role="trainer", index=0
    )


def test_a_log_begins_with_the_notice_of_the_simulation() -> None:
    assert b"simulated cluster: no program runs" in text_at(3).splitlines()[0]


def test_a_log_only_grows() -> None:
    earlier = b""
    for minutes in range(0, 70, 3):
        now = text_at(minutes)
        assert now.startswith(earlier)
        earlier = now
    assert earlier.endswith(b"done\n")


def test_later_points_continue_after_earlier_ones() -> None:
    half, whole = (launch_snapshot(RECORD, (), after(minutes=minutes)) for minutes in (30, 62))
    first = reports.simulated_progress_points(half, after=0)
    rest = reports.simulated_progress_points(whole, after=reports.completed_step(half))
    assert first + rest == reports.simulated_progress_points(whole, after=0)


def test_a_loss_falls_and_the_last_step_is_the_last() -> None:
    points = [
        point
        for point in reports.simulated_progress_points(
            launch_snapshot(RECORD, (), after(minutes=62)), after=0
        )
        if "step" in point
    ]
    assert points[-1]["step"] == points[-1]["total_steps"] == RECORD.profile.steps
    assert points[-1]["loss"] < points[0]["loss"]
    assert [point for point in points if "eval_loss" in point]


def test_a_slow_card_shows_in_the_throughput() -> None:
    quick = record({"tokens_per_second": 9000.0})
    slow = SimulatedFault(
        kind=SimulatedFaultKind.CARD_SLOW, node="n1", card=0, since=after(minutes=30), slowness=3.0
    )
    points = [
        point
        for point in reports.simulated_progress_points(
            launch_snapshot(quick, (slow,), after(minutes=60)), after=0, faults=(slow,)
        )
        if "step" in point
    ]
    assert points[-1]["tokens_per_second"] < points[0]["tokens_per_second"] / 2


def test_a_stopped_launch_continues_from_its_checkpoint() -> None:
    stopped = record(reports=True, stop_at=after(minutes=32), kill_at=after(minutes=40))
    snapshot = launch_snapshot(stopped, (), after(hours=1))
    assert reports.simulated_checkpointed_work(snapshot) == pytest.approx(1810, abs=1)


def test_a_failed_launch_continues_from_its_last_checkpoint() -> None:
    failed = record({"exit_code": 1, "runs": 1700})
    assert reports.simulated_checkpointed_work(
        launch_snapshot(failed, (), after(hours=1))
    ) == pytest.approx(1350)


def test_the_same_launch_has_the_same_run_profile() -> None:
    assert run_profiles.draw_run_profile(ASKED, seed=1, mix=MIX) == run_profiles.draw_run_profile(
        ASKED, seed=1, mix=MIX
    )
    assert run_profiles.draw_run_profile(ASKED, seed=2, mix=MIX) != run_profiles.draw_run_profile(
        ASKED, seed=1, mix=MIX
    )


def test_labels_override_the_run_profile() -> None:
    said = {f"{run_profiles.PREFIX}run-seconds": "90", f"{run_profiles.PREFIX}exit-code": "3"}
    asked = run_profiles.LaunchTraits(
        name="a", role="trainer", cards=1, peak_tokens=1, reports=False, labels=said
    )
    profile = run_profiles.draw_run_profile(asked, seed=1, mix=MIX)
    assert (profile.runs, profile.exit_code, profile.prepares) == (90, 3, 0)


@pytest.mark.parametrize("said", ["soon", "-1", "nan", "inf"])
def test_an_invalid_label_is_refused(said: str) -> None:
    asked = run_profiles.LaunchTraits(
        name="a",
        role="trainer",
        cards=1,
        peak_tokens=1,
        reports=False,
        labels={f"{run_profiles.PREFIX}run-seconds": said},
    )
    with pytest.raises(
        run_profiles.RunProfileRefused, match=r"run-seconds is a number from 0, got"
    ):
        run_profiles.draw_run_profile(asked, seed=1, mix=MIX)


def test_the_configured_share_of_trainings_fails() -> None:
    drawn = [
        run_profiles.draw_run_profile(
            run_profiles.LaunchTraits(
                name=f"attempt-{number}",
                role="trainer",
                cards=8,
                peak_tokens=1,
                reports=True,
                labels={},
            ),
            seed=1,
            mix=run_profiles.WorkloadDistribution(failing=0.1),
        )
        for number in range(2000)
    ]
    failing = sum(profile.exit_code != 0 for profile in drawn) / len(drawn)
    assert 0.08 < failing < 0.12


def test_a_successful_run_uploads_the_outputs_of_its_role() -> None:
    snapshot = launch_snapshot(record(reports=True), (), after(minutes=62) + timedelta(seconds=1))
    kind, files, metrics = reports.simulated_output_files(snapshot, role="trainer")
    assert (kind, set(files)) == ("model", {"README.md", "config.json", "model.safetensors"})
    assert metrics["loss"] > 0
    assert b"there are no weights" in files["README.md"]
