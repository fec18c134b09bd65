"""How an agent hands over its batches: each once, in order, whatever becomes of the network."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest

from ninefold_runtime.agent.batches import Batch
from ninefold_runtime.agent.pushes import Server
from ninefold_runtime.agent.sending import Sender
from ninefold_runtime.agent.sequences import Sequence
from ninefold_runtime.exits import NotReported
from tests.integration.launcher.waiting import wait_for
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
    sequence: Sequence | None = None,
    keep: int = 720,
) -> Sender:
    sender = Sender(
        Server.of(collector.url),
        vendor="nvidia",
        token=token,
        sequence=sequence or Sequence(None),
        keep=keep,
        first_pause_seconds=0.02,
        say=said.append,
    )
    sender.start()
    return sender


def give(sender: Sender, *texts: str) -> None:
    for text in texts:
        sender.add(Batch(at=AT, text=text))


def texts(collector: Collector) -> list[str]:
    return [text for _, text in collector.taken]


def test_a_batch_comes_as_the_control_plane_reads_it(collector: Collector) -> None:
    sender = sender_to(collector, [], sequence=Sequence(None, now=lambda: 7.0))
    give(sender, "a 1\n")
    wait_for(lambda: texts(collector) == ["a 1\n"], what="it came")
    headers, _ = collector.heard[0]
    assert headers["X-Ninefold-Sequence"] == "7000"
    assert headers["X-Ninefold-At"] == "2026-03-01T12:00:00.250Z"
    assert headers["X-Ninefold-Vendor"] == "nvidia"
    assert headers["Content-Type"].startswith("text/plain")
    wait_for(lambda: sender.waiting == 0, what="it is settled")


def test_what_was_kept_during_an_outage_comes_oldest_first_and_the_oldest_beyond_the_limit_is_lost() -> (
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
    # The first was under way when it was given up, and arrived all the same.
    assert texts(collector) == ["a", "c", "d", "e"]
    assert said[0].startswith("the control plane is away, figures are kept: ConnectionRefusedError")
    assert said[1].startswith("the control plane is back after ")
    assert len(said) == 2


def test_a_batch_whose_answer_was_lost_is_sent_again_under_its_number_and_counts_once(
    collector: Collector,
) -> None:
    collector.mute = 1
    sender = sender_to(collector, [])
    give(sender, "a", "b")
    wait_for(lambda: sender.waiting == 0, what="all is sent")
    assert texts(collector) == ["a", "b"]
    numbers = [headers["X-Ninefold-Sequence"] for headers, _ in collector.heard]
    assert numbers[0] == numbers[1] != numbers[2]


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503])
def test_an_answer_that_may_change_is_asked_for_again(collector: Collector, status: int) -> None:
    collector.answers = [(status, {})] * 2
    sender = sender_to(collector, [])
    give(sender, "a")
    wait_for(lambda: texts(collector) == ["a"], what="it is taken in the end")
    assert len(collector.heard) == 3


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
    give(sender, "a", "b", "c")
    wait_for(lambda: texts(collector) == ["c"], what="the next one is taken")
    assert (len(collector.heard), sender.refused) == (3, 2)
    # The same reason is told once.
    assert said == [f"a batch is refused and not sent again: it answered {status}: as told"]


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_token_ends_it_with_the_reason(collector: Collector, status: int) -> None:
    collector.answers = [(status, {})]
    sender = sender_to(collector, [])
    give(sender, "a")
    with pytest.raises(NotReported, match=f"refuses the token: it answered {status}: as told"):
        sender.pause(20)
    assert len(collector.heard) == 1


def test_a_token_that_was_changed_in_its_file_is_taken_up(collector: Collector) -> None:
    tokens = iter(["nft-old", "nft-right"])
    sender = sender_to(collector, [], token=lambda: next(tokens))
    give(sender, "a")
    wait_for(lambda: texts(collector) == ["a"], what="it is taken with the new token")


def test_numbers_of_an_agent_whose_clock_was_set_back_go_on_above_those_that_are_known(
    collector: Collector,
) -> None:
    collector.last = 9_000_000
    sender = sender_to(collector, [], sequence=Sequence(None, now=lambda: 1.0))
    give(sender, "a", "b")
    wait_for(lambda: texts(collector) == ["a", "b"], what="both count")
    assert collector.last > 9_000_000
    assert len(collector.heard) == 3


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

    monkeypatch.setattr("ninefold_runtime.agent.sending.push", broken)
    monkeypatch.setattr("threading.excepthook", lambda _: None)
    sender = sender_to(collector, [])
    give(sender, "a")
    with pytest.raises(NotReported, match="ended unforeseen: ZeroDivisionError"):
        sender.pause(20)
