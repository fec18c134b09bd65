"""A client must not use tokens that no limit counts: by leaving early, or by calling many times at once."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress

import pytest

from tests.integration.gateway.clients import post, user_message
from tests.integration.gateway.conftest import SECRET
from tests.integration.gateway.control_planes import FakeControl, key_of
from tests.integration.gateway.engines import FakeEngine
from tests.integration.gateway.processes import GatewayProcess
from tests.integration.gateway.servers import wait_until

#: The engine never answers it; it is estimated at 402 tokens.
HUGE = {"model": "parser", "messages": user_message("silent " + "x" * 1600)}
LIMIT = 2000


@pytest.fixture
def limited(gateway: GatewayProcess, control: FakeControl) -> GatewayProcess:
    """A gateway whose one key may use five of these prompts a minute."""
    version = control.publish(keys=[key_of(SECRET, tokens_per_minute=LIMIT)])
    wait_until(
        lambda: json.loads(gateway.get("/healthz")[1])["snapshot_version"] == version,
        what="the snapshot with the limit",
    )
    return gateway


@contextmanager
def sent(gateway: GatewayProcess) -> Iterator[http.client.HTTPConnection]:
    """A call with a huge prompt that is under way; the client leaves at the end."""
    with closing(http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=20)) as client:
        headers = {"Authorization": f"Bearer {SECRET}", "Content-Type": "application/json"}
        client.request("POST", "/v1/chat/completions", json.dumps(HUGE), headers)
        yield client


def outcome(client: http.client.HTTPConnection, engine: FakeEngine, *, seen: int) -> int | None:
    """The status of a refusal; None once the engine has the call."""
    while len(engine.bodies) == seen:
        assert client.sock is not None
        client.sock.settimeout(0.05)
        with suppress(TimeoutError):
            return client.getresponse().status
    return None


def wait_until_left(engine: FakeEngine, *, calls: int) -> None:
    wait_until(lambda: engine.cancelled >= calls, what="the gateway to leave the engine")


def test_leaving_before_the_first_byte_is_not_free(
    limited: GatewayProcess, engine: FakeEngine, control: FakeControl
) -> None:
    status, calls = None, 0
    while status is None:
        assert calls < 30, "every call was let in"
        with sent(limited) as client:
            status = outcome(client, engine, seen=calls)
        calls = len(engine.bodies)
        wait_until_left(engine, calls=calls)
    assert status == 429
    assert post(limited, {"model": "parser", "messages": user_message("hi")})[0] == 429
    aborted = wait_until(
        lambda: [each for each in control.records if each["outcome"] == "aborted"][calls - 1 :],
        what="the usage records",
    )
    assert aborted[0]["prompt_tokens"] > 400


def test_calls_at_the_same_time_cannot_pass_a_limit_because_none_has_ended(
    limited: GatewayProcess, engine: FakeEngine
) -> None:
    status, calls = None, 0
    with ExitStack() as open_calls:
        while status is None:
            assert calls < 30, "every call was let in"
            client = open_calls.enter_context(sent(limited))
            status = outcome(client, engine, seen=calls)
            calls = len(engine.bodies)
    assert status == 429
    # What flows back in the meantime may let a few more in than fill the limit.
    assert calls >= 5
