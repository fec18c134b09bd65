"""What the launcher's tests rely on."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def unblocked_signals() -> Iterator[None]:
    """A run that a script put into the background inherits these as ignored, and so would its children."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGQUIT)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
