"""Messages are relayed by the process that committed them; a failing broker delays no publisher twice."""

from __future__ import annotations

from typing import Any

import pytest
from kombu.exceptions import OperationalError

from config import tasks
from controlplane.outbox import messages


class Outbox:
    """Counts relays of a given number of pending messages, and fails as a broker that is down."""

    def __init__(self) -> None:
        self.relays = 0
        self.pending = 1
        self.broker_down = False

    def relay_messages(self, _send: object) -> int:
        self.relays += 1
        if self.broker_down:
            raise OperationalError("connection refused")
        return min(self.pending, messages.RELAY_BATCH)


class QueuedTask:
    def __init__(self) -> None:
        self.calls = 0

    def apply_async(self, **_: Any) -> None:
        self.calls += 1


@pytest.fixture
def outbox(monkeypatch: pytest.MonkeyPatch) -> Outbox:
    fake = Outbox()
    monkeypatch.setattr(messages, "relay_messages", fake.relay_messages)
    return fake


@pytest.fixture
def relay_task(monkeypatch: pytest.MonkeyPatch) -> QueuedTask:
    task = QueuedTask()
    monkeypatch.setattr(tasks, "relay_outbox", task)
    return task


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr("config.tasks.time.monotonic", lambda: now[0])
    return now


def test_a_burst_is_relayed_together(outbox: Outbox, clock: list[float]) -> None:
    relay = tasks.OutboxCommitRelay()
    relay()
    relay()
    assert outbox.relays == 1
    clock[0] += 0.2
    relay()
    assert outbox.relays == 2


def test_a_failed_broker_is_not_used_for_a_while(outbox: Outbox, clock: list[float]) -> None:
    relay, outbox.broker_down = tasks.OutboxCommitRelay(), True
    relay()
    clock[0] += 10
    relay()
    assert outbox.relays == 1
    clock[0] += 30
    outbox.broker_down = False
    relay()
    clock[0] += 1
    relay()
    assert outbox.relays == 3


@pytest.mark.usefixtures("clock")
def test_a_backlog_is_left_to_a_task(outbox: Outbox, relay_task: QueuedTask) -> None:
    tasks.OutboxCommitRelay()()
    assert relay_task.calls == 0
    outbox.pending = messages.RELAY_BATCH + 1
    tasks.OutboxCommitRelay()()
    assert relay_task.calls == 1
