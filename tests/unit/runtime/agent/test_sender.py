"""Batches that wait, and their numbers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

import pytest

from ninefold_runtime.agent.card_samples import SampleBatch
from ninefold_runtime.agent.sender import BatchBacklog, BatchSequence, QueuedMetricBatch

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def waiting(number: int) -> QueuedMetricBatch:
    """The batch of that number: one was measured each second."""
    return QueuedMetricBatch(
        number=number, batch=SampleBatch(at=NOW + timedelta(seconds=number), text="")
    )


def backlog_of(*numbers: int, limit: int = 100) -> BatchBacklog:
    backlog = BatchBacklog(limit=limit)
    for number in numbers:
        backlog.add(waiting(number))
    return backlog


def emptied(backlog: BatchBacklog) -> list[int]:
    """The numbers that were left, as they go out."""
    numbers = []
    while backlog:
        newest = backlog.newest(now=0.0)
        numbers.append(newest.number)
        backlog.remove(newest)
    return numbers


def test_the_newest_goes_out_first() -> None:
    assert emptied(backlog_of(1, 2, 3)) == [3, 2, 1]


def test_the_oldest_batch_goes_when_there_are_too_many_and_is_counted() -> None:
    backlog = backlog_of(1, 2, 3, limit=2)
    assert backlog.dropped == 1
    assert emptied(backlog) == [3, 2]


def test_a_batch_that_was_overtaken_while_it_was_sent_is_settled_by_itself() -> None:
    backlog = backlog_of(1, 2)
    under_way = backlog.newest(now=0.0)
    backlog.add(waiting(3))
    backlog.remove(under_way)
    assert emptied(backlog) == [3, 1]


def test_a_batch_that_was_given_up_while_it_was_sent_takes_no_other_with_it() -> None:
    backlog = backlog_of(1, limit=1)
    under_way = backlog.newest(now=0.0)
    backlog.add(waiting(2))
    backlog.remove(under_way)
    assert emptied(backlog) == [2]


def test_a_batch_that_has_to_wait_lets_the_next_lower_one_go_first() -> None:
    backlog = backlog_of(1, 2, 3)
    backlog.newest(now=0.0).not_before = 7.0
    assert backlog.newest(now=6.0).number == 2
    assert backlog.newest(now=7.0).number == 3


def test_where_all_have_to_wait_it_is_the_one_that_may_be_sent_soonest() -> None:
    backlog = backlog_of(1, 2)
    for until in (9.0, 8.0):
        backlog.newest(now=0.0).not_before = until
    assert backlog.newest(now=0.0).number == 1


def test_what_was_measured_until_an_instant_goes_together_and_is_counted() -> None:
    backlog = backlog_of(1, 2, 3, 4)
    assert backlog.remove_measured_until(NOW + timedelta(seconds=3)) == 3
    assert emptied(backlog) == [4]


def test_other_numbers_are_given_in_the_same_order() -> None:
    backlog = backlog_of(1, 2, 3)
    backlog.renumber(count(50).__next__)
    assert backlog.newest(now=0.0).batch.at == NOW + timedelta(seconds=3)
    assert emptied(backlog) == [52, 51, 50]


def test_numbers_begin_at_the_time_and_go_on_without_a_leap(tmp_path: Path) -> None:
    clock = iter([1000.0, 1005.0, 1010.0])
    sequence = BatchSequence(tmp_path / "n", now=lambda: next(clock))
    assert [sequence.next() for _ in range(3)] == [1_000_000, 1_000_001, 1_000_002]


def test_after_a_restart_numbers_go_on_above_even_if_the_clock_was_set_back(tmp_path: Path) -> None:
    path = tmp_path / "n"
    last = [BatchSequence(path, now=lambda: 1000.0).next() for _ in range(1)][-1]
    assert BatchSequence(path, now=lambda: 10.0).next() > last


def test_without_its_file_an_agent_goes_on_above_by_the_clock() -> None:
    last = BatchSequence(None, now=lambda: 1000.0).next()
    assert BatchSequence(None, now=lambda: 1005.0).next() > last


def test_a_number_that_somebody_else_gave_is_passed() -> None:
    sequence = BatchSequence(None, now=lambda: 1.0)
    sequence.past(5_000)
    assert sequence.next() == 5_001


@pytest.mark.parametrize("remembered", [2**63 - 1, 2**63, 10**25, -5])
def test_a_number_that_cannot_be_gone_on_from_is_none_and_said(
    tmp_path: Path, remembered: int
) -> None:
    path, said = tmp_path / "n", list[str]()
    path.write_text(f"{remembered}\n")
    assert BatchSequence(path, now=lambda: 1000.0, log=said.append).next() == 1_000_000
    assert len(said) == 1
    assert f"{remembered} is no number that can be gone on from" in said[0]


def test_the_file_is_written_rarely_and_a_broken_one_is_said(tmp_path: Path) -> None:
    path = tmp_path / "n"
    said: list[str] = []
    path.write_text("many")
    sequence = BatchSequence(path, now=lambda: 1000.0, log=said.append)
    written = set()
    for _ in range(90_000):
        given = sequence.next()
        if given % 30_000 == 0:
            written.add(int(path.read_text()))
            assert given < max(written)
    assert len(written) == 2
    assert len(said) == 1
    assert "cannot be used" in said[0]
