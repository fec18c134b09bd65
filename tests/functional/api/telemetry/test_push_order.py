"""Batches that come again, late or in any order: each is taken once, and the newest stays the newest."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from apps.monitoring.models import Fault
from apps.telemetry.models import CardHistory, CardMetrics, NodeToken, Source
from apps.telemetry.services import node_tokens
from tests.functional.api.telemetry.batches import send, text

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("nothing_counted")]


@pytest.mark.parametrize("again", [7, 6, 4])
def test_a_batch_that_comes_again_changes_nothing(token: str, again: int) -> None:
    for number in (4, 7, 6):
        send(token, text(), sequence=number)
    before = CardMetrics.objects.values().get()

    answer = send(token, text(utilization=1, fault=79), sequence=again)

    assert answer.status_code == 200
    assert (answer.json()["taken"], answer.json()["sequence"]) == (False, 7)
    assert CardMetrics.objects.values().get() == before
    assert (CardHistory.objects.count(), Fault.objects.count()) == (3, 0)


def test_what_was_buffered_comes_in_any_order_and_goes_to_the_history_at_its_own_time(
    token: str,
) -> None:
    now = datetime.now(UTC)
    times = {number: now - timedelta(minutes=30 - number) for number in range(1, 7)}
    for number in (1, 6, 5, 2, 4, 3):
        body = text(utilization=number, fault=79 * (number == 5))
        answer = send(token, body, sequence=number, at=times[number].isoformat()).json()
        assert (answer["taken"], answer["readings"]) == (True, 1)
        assert answer["sequence"] == (1 if number == 1 else 6)
    assert dict(CardHistory.objects.values_list("utilization", "at")) == times
    newest = CardMetrics.objects.get()
    assert (newest.utilization, newest.at) == (6, times[6])
    # What was wrong then and is not now is not wrong.
    assert not Fault.objects.exists()
    assert NodeToken.objects.get().gaps == []


def test_what_was_buffered_goes_to_the_history_in_its_order(token: str) -> None:
    now = datetime.now(UTC)
    for number in range(3):
        at = now - timedelta(minutes=30 - number)
        assert send(token, text(utilization=number), sequence=number + 1, at=at.isoformat()).json()[
            "taken"
        ]
    assert CardMetrics.objects.get().utilization == 2
    assert CardHistory.objects.count() == 3


def test_a_node_is_heard_of_by_what_comes_behind(token: str) -> None:
    send(token, text(), sequence=9)
    NodeToken.objects.update(used_at=None)
    assert send(token, text(), sequence=8).json()["taken"] is True
    stored = NodeToken.objects.get()
    assert stored.used_at is not None
    assert stored.sequence == 9


def test_with_a_clock_that_is_ahead_what_comes_behind_is_not_the_newest(token: str) -> None:
    ahead = datetime.now(UTC) + timedelta(seconds=50)
    send(token, text(utilization=2), sequence=2, at=ahead.isoformat())
    earlier = ahead - timedelta(seconds=5)
    assert send(token, text(utilization=1), sequence=1, at=earlier.isoformat()).json()["taken"]
    assert CardMetrics.objects.get().utilization == 2


def test_what_was_refused_of_a_batch_that_comes_behind_is_not_said_of_the_source(
    token: str,
) -> None:
    for number in (1, 3):
        send(token, text(), sequence=number)
    before = Source.objects.values().get()

    answer = send(token, text() + text(node="n9"), sequence=2).json()

    assert (answer["taken"], answer["refused"]) == (True, 1)
    assert Source.objects.values().get() == before


def test_a_tool_that_was_silent_while_nobody_listened_is_no_fault_now(token: str) -> None:
    send(token, "ninefold_agent_reader_ok 1\n", sequence=3)
    assert send(token, "ninefold_agent_reader_ok 0\n", sequence=2).json()["taken"] is True
    assert not Fault.objects.exists()
    assert NodeToken.objects.get().agent["reader_ok"] is True


def test_few_gaps_are_remembered_and_few_numbers_of_each(token: str) -> None:
    far = node_tokens.WIDEST_GAP + 10
    send(token, "", sequence=far)
    assert send(token, "", sequence=9).json()["taken"] is False
    assert send(token, "", sequence=10).json()["taken"] is True
    for step in range(1, node_tokens.MOST_GAPS + 1):
        send(token, "", sequence=far + 3 * step)
    assert len(NodeToken.objects.get().gaps) == node_tokens.MOST_GAPS
    # The lowest is forgotten, and so what was missing there counts as taken.
    assert send(token, "", sequence=11).json()["taken"] is False
    assert send(token, "", sequence=far + 1).json()["taken"] is True


def test_a_gap_that_is_cut_in_two_makes_no_more_of_them_than_are_remembered(token: str) -> None:
    for step in range(node_tokens.MOST_GAPS):
        send(token, "", sequence=10 * (step + 1))
    top = 10 * node_tokens.MOST_GAPS
    assert send(token, "", sequence=top - 5).json()["taken"] is True
    gaps = NodeToken.objects.get().gaps
    assert len(gaps) == node_tokens.MOST_GAPS
    assert gaps[0] == [11, 19]
    assert gaps[-2:] == [[top - 9, top - 6], [top - 4, top - 1]]


def test_the_largest_numbers_are_told_apart(token: str) -> None:
    top = 2**63 - 1
    for number in (top, top - 2):
        assert send(token, "", sequence=number).json() == {
            "sequence": top,
            "taken": True,
            "readings": 0,
            "refused": 0,
            "refusals": [],
        }
    assert send(token, "", sequence=top - 2).json()["taken"] is False
