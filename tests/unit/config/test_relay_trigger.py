"""News is handed on at once where the broker takes a message, and nobody waits for one that does not."""

from __future__ import annotations

from typing import Any

import pytest
from kombu.exceptions import OperationalError

from config import tasks


class Broker:
    """Counts what it is asked, and fails when told to."""

    def __init__(self) -> None:
        self.asked = 0
        self.down = False

    def apply_async(self, **_: Any) -> None:
        self.asked += 1
        if self.down:
            raise OperationalError("connection refused")


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Broker:
    fake = Broker()
    monkeypatch.setattr(tasks, "relay_outbox", fake)
    return fake


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr("config.tasks.time.monotonic", lambda: now[0])
    return now


def test_a_burst_triggers_one_relay_and_later_messages_another(
    broker: Broker, clock: list[float]
) -> None:
    wake = tasks.RelayTrigger()
    wake()
    wake()
    assert broker.asked == 1
    clock[0] += 0.2
    wake()
    assert broker.asked == 2


def test_a_failed_broker_is_not_used_for_a_while(broker: Broker, clock: list[float]) -> None:
    wake, broker.down = tasks.RelayTrigger(), True
    wake()
    clock[0] += 10
    wake()
    assert broker.asked == 1
    clock[0] += 30
    broker.down = False
    wake()
    clock[0] += 1
    wake()
    assert broker.asked == 3
