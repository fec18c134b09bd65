"""How an agent hands over its batches: each once, the newest first, whatever becomes of the network."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import count

import pytest

from ninefold_runtime.agent.card_samples import SampleBatch
from ninefold_runtime.agent.push_client import MetricPushEndpoint
from ninefold_runtime.agent.sender import BatchSender, BatchSequence, SendIntervals
from ninefold_runtime.exit_codes import ReportNotDelivered
from tests.integration.launcher.process_polling import wait_for
from tests.integration.runtime.collectors import Collector

AT = datetime(2026, 3, 1, 12, 0, 0, 250_000, tzinfo=UTC)


@pytest.fixture
def collector() -> Iterator[Collector]:
    collector = Collector()
    with collector.listening():
        yield collector


def sender_to(
    collector: Collector,
    said: list[str],
    *,
    token: Callable[[], str] = lambda: "nft-right",
    sequence: BatchSequence | None = None,
    keep: int = 720,
    behind: float = 0.02,
    patience_behind: float = 10.0,
) -> BatchSender:
    sender = BatchSender(
        MetricPushEndpoint.of(collector.url),
        vendor="nvidia",
        token=token,
        sequence=sequence or BatchSequence(None),
        keep=keep,
        intervals=SendIntervals(
            first_pause=0.02, behind=behind, again=0.05, patience_behind=patience_behind
        ),
        log=said.append,
    )
    sender.start()
    return sender


def give(sender: BatchSender, *texts: str) -> None:
    """One batch a second: a at ``AT``, b a second later, and so on."""
    for text in texts:
        sender.add(SampleBatch(at=AT + timedelta(seconds=ord(text[0]) - ord("a")), text=text))


@contextmanager
def back_after(
    collector: Collector,
    *texts: str,
    behind: float = 0.02,
    patience_behind: float = 10.0,
    said: list[str] | None = None,
) -> Iterator[BatchSender]:
    """A sender that kept these batches and whose control plane is there again."""
    said = [] if said is None else said
    collector.reserve()
    sender = sender_to(collector, said, behind=behind, patience_behind=patience_behind)
    give(sender, *texts)
    wait_for(lambda: len(said) == 1, what="it knows of the outage")
    with collector.listening():
        yield sender


def texts(collector: Collector) -> list[str]:
    return [text for _, text in collector.taken]


def test_a_batch_comes_as_the_control_plane_reads_it(collector: Collector) -> None:
    sender = sender_to(collector, [], sequence=BatchSequence(None, now=lambda: 7.0))
    give(sender, "a 1\n")
    wait_for(lambda: texts(collector) == ["a 1\n"], what="it came")
    headers, _ = collector.received[0]
    assert headers["X-Ninefold-Sequence"] == "7000"
    assert headers["X-Ninefold-At"] == "2026-03-01T12:00:00.250Z"
    assert headers["X-Ninefold-Vendor"] == "nvidia"
    assert headers["Content-Type"].startswith("text/plain")
    wait_for(lambda: sender.waiting == 0, what="it is settled")


def test_what_was_kept_during_an_outage_comes_newest_first_and_the_oldest_beyond_the_limit_is_lost() -> (
    None
):
    collector, said = Collector(), list[str]()
    collector.reserve()
    sender = sender_to(collector, said, keep=3)
    give(sender, "a")
    wait_for(lambda: len(said) == 1, what="it knows of the outage")
    give(sender, "b", "c", "d", "e")
    assert (sender.waiting, sender.dropped) == (3, 2)
    with collector.listening():
        wait_for(lambda: sender.waiting == 0, what="all is sent")
    assert texts(collector) == ["e", "d", "c"]
    # They are numbered as they were measured.
    assert [number for number, _ in collector.taken] == sorted(collector.numbers, reverse=True)
    assert said[0].startswith("the control plane is away, figures are kept: ConnectionRefusedError")
    assert said[1].startswith("the control plane is back after ")
    assert len(said) == 2


def test_what_was_kept_never_holds_up_a_new_batch(collector: Collector) -> None:
    sender = sender_to(collector, [], behind=60.0)
    collector.mute = 1
    give(sender, "a", "b")
    wait_for(lambda: "b" in texts(collector), what="the newer one is there")
    give(sender, "c")
    wait_for(lambda: "c" in texts(collector), what="the new one is there")
    give(sender, "d")
    wait_for(lambda: "d" in texts(collector), what="and the next")


def test_what_was_kept_comes_at_its_pace() -> None:
    collector = Collector()
    began = time.monotonic()
    with back_after(collector, "a", "b", "c", "d", behind=0.3) as sender:
        wait_for(lambda: sender.waiting == 0, what="all is sent")
    assert texts(collector) == ["d", "c", "b", "a"]
    assert time.monotonic() - began >= 0.6


@pytest.mark.parametrize("answer", [(503, {}), (429, {"Retry-After": "60"})])
def test_a_kept_batch_that_cannot_be_taken_now_holds_up_no_new_one(
    answer: tuple[int, dict[str, str]],
) -> None:
    collector = Collector(at_text={"a": [answer]})
    with back_after(collector, "a", "b") as sender:
        wait_for(lambda: not collector.at_text["a"], what="the kept one was tried")
        give(sender, "c")
        # Well before it may ask for the kept one again, as it was told.
        wait_for(lambda: "c" in texts(collector), what="the new one is there", seconds=5)


def test_a_kept_batch_that_fails_holds_up_no_older_one_and_is_given_up_in_the_end() -> None:
    collector, said = Collector(at_text={"c": [(500, {})] * 9}), list[str]()
    with back_after(collector, "a", "b", "c", "d", said=said) as sender:
        wait_for(lambda: sender.waiting == 0, what="nothing waits any more")
    assert texts(collector) == ["d", "b", "a"]
    assert len([text for _, text in collector.received if text == "c"]) == 5
    assert sender.refused == 1
    assert said[-1] == (
        "a kept batch is given up: the control plane failed on it 5 times: it answered 500"
    )


def test_a_kept_batch_that_failed_is_sent_again_later() -> None:
    collector = Collector(at_text={"c": [(500, {})] * 4})
    with back_after(collector, "a", "b", "c", "d") as sender:
        wait_for(lambda: sender.waiting == 0, what="all is sent")
    assert texts(collector) == ["d", "b", "a", "c"]
    assert sender.refused == 0


def test_a_kept_batch_that_was_put_off_is_not_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ninefold_runtime.agent.sender._MOST_FAILURES", 1)
    collector = Collector(at_text={"a": [(503, {"Retry-After": "1"})]})
    with back_after(collector, "a", "b") as sender:
        wait_for(lambda: sender.waiting == 0, what="all is sent")
    assert texts(collector) == ["b", "a"]


def test_a_new_batch_waits_for_the_answer_to_a_kept_one_no_longer_than_its_patience() -> None:
    collector = Collector(slow={"a": 6.0})
    with back_after(collector, "a", "b", patience_behind=0.2) as sender:
        wait_for(lambda: "a" in [text for _, text in collector.received], what="it is under way")
        began = time.monotonic()
        give(sender, "c")
        wait_for(lambda: "c" in texts(collector), what="the new one is there")
        assert time.monotonic() - began < 3.0
        collector.slow.clear()


def test_what_the_control_plane_did_not_take_is_counted_and_told_once() -> None:
    collector, said = Collector(in_order=True), list[str]()
    with back_after(collector, "a", "b", "c", "d", said=said) as sender:
        wait_for(lambda: sender.waiting == 0, what="all is answered")
    assert (texts(collector), sender.untaken) == (["d"], 3)
    (message,) = said[2:]
    assert message.startswith(
        "a kept batch was not taken: counted before, or no longer remembered by the control plane"
    )


def test_where_all_was_taken_nothing_is_told() -> None:
    collector, said = Collector(), list[str]()
    with back_after(collector, "a", "b", "c", said=said) as sender:
        wait_for(lambda: sender.waiting == 0, what="all is answered")
    assert (sender.untaken, len(said)) == (0, 2)


def test_a_batch_that_is_too_old_is_dropped_with_all_before_it_and_their_number_is_told() -> None:
    collector, said = Collector(oldest_at=AT + timedelta(seconds=3)), list[str]()
    with back_after(collector, "a", "b", "c", "d", "e", said=said) as sender:
        wait_for(lambda: said[-1].startswith("too old"), what="that they are given up is told")
    assert (texts(collector), sender.refused, sender.waiting) == (["e", "d"], 3, 0)
    assert [text for _, text in collector.received] == ["e", "d", "c"]
    assert said[-1] == (
        "too old for the control plane, 3 batches are dropped: it answered 400: too old"
    )


def test_a_batch_whose_answer_was_lost_is_sent_again_under_its_number_and_counts_once(
    collector: Collector,
) -> None:
    collector.mute = 1
    sender = sender_to(collector, [])
    give(sender, "a")
    wait_for(lambda: texts(collector) == ["a"], what="it came")
    give(sender, "b")
    wait_for(lambda: sender.waiting == 0, what="all is sent")
    assert texts(collector) == ["a", "b"]
    first, *others = (
        headers["X-Ninefold-Sequence"] for headers, text in collector.received if text == "a"
    )
    assert others == [first]


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503])
def test_an_answer_that_may_change_is_asked_for_again(collector: Collector, status: int) -> None:
    collector.answers = [(status, {})] * 2
    sender = sender_to(collector, [])
    give(sender, "a")
    wait_for(lambda: texts(collector) == ["a"], what="it is taken in the end")
    assert len(collector.received) == 3


def test_the_control_plane_says_how_long_to_wait(collector: Collector) -> None:
    collector.answers = [(429, {"Retry-After": "1"})]
    began = time.monotonic()
    give(sender_to(collector, []), "a")
    wait_for(lambda: texts(collector) == ["a"], what="it is taken in the end")
    assert time.monotonic() - began >= 1.0


@pytest.mark.parametrize("status", [400, 404, 413, 415, 301])
def test_a_batch_that_is_refused_is_not_sent_again_and_the_next_one_is(
    collector: Collector, status: int
) -> None:
    collector.answers = [(status, {}), (status, {})]
    said: list[str] = []
    sender = sender_to(collector, said)
    give(sender, "a")
    wait_for(lambda: sender.refused == 1, what="it is refused")
    give(sender, "b")
    wait_for(lambda: sender.refused == 2, what="so is the next one")
    give(sender, "c")
    wait_for(lambda: texts(collector) == ["c"], what="the next one is taken")
    assert len(collector.received) == 3
    # The same reason is told once.
    assert said == [f"a batch is refused and not sent again: it answered {status}: as told"]


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_token_ends_it_with_the_reason(collector: Collector, status: int) -> None:
    collector.answers = [(status, {})]
    sender = sender_to(collector, [])
    give(sender, "a")
    with pytest.raises(
        ReportNotDelivered, match=f"refuses the token: it answered {status}: as told"
    ):
        sender.pause(20)
    assert len(collector.received) == 1


def test_a_token_that_was_changed_in_its_file_is_taken_up(collector: Collector) -> None:
    tokens = iter(["nft-old", "nft-right"])
    sender = sender_to(collector, [], token=lambda: next(tokens))
    give(sender, "a")
    wait_for(lambda: texts(collector) == ["a"], what="it is taken with the new token")


def test_numbers_of_an_agent_whose_clock_was_set_back_go_on_above_those_that_are_known(
    collector: Collector,
) -> None:
    collector.last, collector.floor = 9_000_000, 9_000_000
    collector.answers = [(503, {})]
    sender = sender_to(collector, [], sequence=BatchSequence(None, now=lambda: 1.0))
    give(sender, "a", "b", "c")
    wait_for(lambda: sender.waiting == 0, what="all are sent")
    assert sorted(collector.taken) == list(zip(count(9_000_001), "abc", strict=False))


def test_a_page_of_some_proxy_is_no_answer(collector: Collector) -> None:
    collector.answers = [(200, {})]
    said: list[str] = []
    give(sender_to(collector, said), "a")
    wait_for(lambda: texts(collector) == ["a"], what="it is taken in the end")
    assert "is not understood" in said[0]


def test_what_is_wrong_with_the_code_of_sending_is_not_silence(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> object:
        raise ZeroDivisionError("once")

    monkeypatch.setattr("ninefold_runtime.agent.sender.push_batch", broken)
    monkeypatch.setattr("threading.excepthook", lambda _: None)
    sender = sender_to(collector, [])
    give(sender, "a")
    with pytest.raises(ReportNotDelivered, match="ended unforeseen: ZeroDivisionError"):
        sender.pause(20)
