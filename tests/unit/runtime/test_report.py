"""What of the report client needs no socket: words, the bounded backlog, the address."""

from __future__ import annotations

import pytest

from ninefold_runtime.exit_codes import InvalidTaskInput
from ninefold_runtime.report import ProgressBacklog, ReportAddress, Reporter, format_progress_point


def test_a_point_reads_as_one_line_of_a_log() -> None:
    point = {
        "step": 10,
        "total_steps": 120,
        "loss": 1.23456,
        "tokens_per_second": 849.6,
        "eta_seconds": 95.2,
    }
    assert format_progress_point(point) == "step 10/120 · loss 1.235 · 850 tokens/s · 95 s left"


def test_a_figure_that_is_no_number_is_said_to_be_none() -> None:
    assert format_progress_point({"step": 3, "loss": None}) == "step 3 · loss is not a number"


def test_without_an_address_progress_is_printed_and_nothing_else_happens() -> None:
    said: list[str] = []
    with Reporter(None, log=said.append) as reporter:
        reporter.progress(step=1, loss=0.5)
        reporter.checkpoint(step=1)
    assert said == ["step 1 · loss 0.5", "checkpoint saved at step 1"]


def test_an_address_that_is_not_http_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NINEFOLD_REPORT_URL", "file:///etc")
    with pytest.raises(InvalidTaskInput, match="must be an http"):
        ReportAddress.from_environment()


def test_no_address_means_that_nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NINEFOLD_REPORT_URL", raising=False)
    assert ReportAddress.from_environment() is None


def test_a_full_backlog_thins_its_older_half_and_keeps_its_ends() -> None:
    backlog = ProgressBacklog(limit=100)
    for step in range(1000):
        backlog.add({"step": step})
    steps = [point["step"] for point in backlog.take(1000)]
    assert len(steps) <= 100
    assert steps == sorted(steps)
    assert steps[0] == 0
    assert steps[-1] == 999


def test_checkpoints_and_evaluations_outlive_plain_points() -> None:
    backlog = ProgressBacklog(limit=20)
    backlog.add({"checkpoint": {"step": 1}})
    backlog.add({"eval_loss": 0.5})
    for step in range(500):
        backlog.add({"step": step})
    retained = backlog.take(20)
    assert {"checkpoint": {"step": 1}} in retained
    assert {"eval_loss": 0.5} in retained


def test_points_that_could_not_be_sent_come_first_again() -> None:
    backlog = ProgressBacklog(limit=10)
    backlog.add({"step": 1})
    backlog.add({"step": 2})
    batch = backlog.take(1)
    backlog.put_back(batch)
    assert [point["step"] for point in backlog.take(10)] == [1, 2]
