"""Batches that wait, and their numbers."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from ninefold_runtime.agent.backlog import Backlog
from ninefold_runtime.agent.batches import Batch
from ninefold_runtime.agent.sequences import Sequence

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def batch(text: str) -> Batch:
    return Batch(at=NOW, text=text)


def test_the_oldest_batch_goes_when_there_are_too_many_and_is_counted() -> None:
    backlog = Backlog(limit=2)
    for text in ("a", "b", "c"):
        backlog.add(batch(text))
    assert (backlog.oldest().text, len(backlog), backlog.dropped) == ("b", 2, 1)


def test_a_batch_that_was_given_up_while_it_was_sent_takes_no_other_with_it() -> None:
    backlog = Backlog(limit=1)
    first, second = batch("a"), batch("b")
    backlog.add(first)
    backlog.add(second)
    backlog.settle(first)
    assert backlog.oldest() is second
    backlog.settle(second)
    assert len(backlog) == 0


def test_numbers_begin_at_the_time_and_never_repeat_within_one_millisecond(tmp_path: Path) -> None:
    sequence = Sequence(tmp_path / "n", now=lambda: 1000.0)
    assert [sequence.next() for _ in range(3)] == [1_000_000, 1_000_001, 1_000_002]


def test_after_a_restart_numbers_go_on_above_even_if_the_clock_was_set_back(tmp_path: Path) -> None:
    path = tmp_path / "n"
    last = [Sequence(path, now=lambda: 1000.0).next() for _ in range(1)][-1]
    assert Sequence(path, now=lambda: 10.0).next() > last


def test_without_its_file_an_agent_goes_on_above_by_the_clock() -> None:
    last = Sequence(None, now=lambda: 1000.0).next()
    assert Sequence(None, now=lambda: 1005.0).next() > last


def test_a_number_that_somebody_else_gave_is_passed() -> None:
    sequence = Sequence(None, now=lambda: 1.0)
    sequence.past(5_000)
    assert sequence.next() == 5_001


def test_the_file_is_written_rarely_and_a_broken_one_is_said(tmp_path: Path) -> None:
    path, clock = tmp_path / "n", iter([1000.0 + step for step in range(200)])
    said: list[str] = []
    path.write_text("many")
    sequence = Sequence(path, now=lambda: next(clock), say=said.append)
    written = set()
    for _ in range(120):
        sequence.next()
        written.add(path.read_text())
    assert len(written) == 2
    assert len(said) == 1
    assert "cannot be used" in said[0]
