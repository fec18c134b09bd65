"""The charge of a request in limits and usage records, however it ends."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

from gateway.token_estimates import estimate_prompt_tokens
from tests.cases import for_each_case
from tests.integration.gateway.clients import post, user_message
from tests.integration.gateway.conftest import SECRET
from tests.integration.gateway.control_planes import FakeControl, key_of
from tests.integration.gateway.engines import FakeEngine
from tests.integration.gateway.processes import GatewayProcess
from tests.integration.gateway.servers import wait_until

#: More than a tenth of what the key may use in a minute, and less than the context of 512 tokens.
LONG = "silent " + "x" * 1600
LIMIT = 2000


@pytest.fixture
def limited(gateway: GatewayProcess, control: FakeControl) -> GatewayProcess:
    """A gateway whose one key has a limit of tokens."""
    set_limit(gateway, control, LIMIT)
    return gateway


def set_limit(gateway: GatewayProcess, control: FakeControl, tokens_per_minute: int) -> None:
    version = control.publish(keys=[key_of(SECRET, tokens_per_minute=tokens_per_minute)])
    wait_until(
        lambda: json.loads(gateway.get("/healthz")[1])["snapshot_version"] == version,
        what="the snapshot with the limit",
    )


def body_of(prompt: str, **fields: Any) -> dict[str, Any]:
    return {"model": "parser", "messages": user_message(prompt), **fields}


def estimate_of(prompt: str) -> int:
    return estimate_prompt_tokens(body_of(prompt), context_length=512)


@contextmanager
def sent(
    gateway: GatewayProcess, prompt: str, **fields: Any
) -> Iterator[http.client.HTTPConnection]:
    """A request in progress."""
    with closing(http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=20)) as client:
        headers = {"Authorization": f"Bearer {SECRET}", "Content-Type": "application/json"}
        client.request(
            "POST", "/v1/chat/completions", json.dumps(body_of(prompt, **fields)), headers
        )
        yield client


def record_of(control: FakeControl) -> dict[str, Any]:
    (record,) = wait_until(lambda: control.records, what="the usage record")
    return record


def remaining(gateway: GatewayProcess) -> int:
    """Remaining tokens of the key, from the headers of a small request."""
    status, headers, _ = post(gateway, body_of("words 1"))
    assert status == 200
    return int(headers["x-ratelimit-remaining-tokens"])


def test_request_aborted_before_first_byte_is_charged_its_prompt(
    gateway: GatewayProcess, control: FakeControl, engine: FakeEngine
) -> None:
    # The prompt is the use of more than six minutes.
    set_limit(gateway, control, 60)
    with sent(gateway, LONG):
        wait_until(lambda: engine.bodies, what="the engine to have the call")
    record = record_of(control)
    assert (record["outcome"], record["prompt_tokens"]) == ("aborted", estimate_of(LONG))
    assert record["prompt_tokens"] > 400
    assert record["completion_tokens"] == 0
    status, headers, _ = post(gateway, body_of("words 1"))
    assert status == 429
    assert int(headers["retry-after"]) > 60


def test_aborted_stream_is_charged_prompt_and_delivered_tokens(
    limited: GatewayProcess, control: FakeControl, engine: FakeEngine
) -> None:
    with sent(limited, "endless " + "x" * 400, stream=True) as client:
        response = client.getresponse()
        for _ in range(6):
            response.readline()
    record = record_of(control)
    assert record["outcome"] == "aborted"
    assert record["prompt_tokens"] == estimate_of("endless " + "x" * 400)
    assert record["completion_tokens"] >= 3


def test_a_stream_counts_in_the_limit_while_it_is_open(
    gateway: GatewayProcess, control: FakeControl
) -> None:
    # The bucket refills by a token a second; the stream uses up to fifty.
    set_limit(gateway, control, 60)
    with sent(gateway, "endless", stream=True) as client:
        response = client.getresponse()
        # An event is a line and a blank one.
        for _ in range(200):
            response.readline()
        status, _, _ = post(gateway, body_of("words 1"))
    assert status == 429


@pytest.mark.parametrize(
    ("prompt", "stream", "delivered"),
    [("status 500 ", False, 0), ("status 500 ", True, 0), ("html ", False, 0), ("break ", True, 1)],
)
def test_failed_request_is_charged_only_delivered_tokens(
    limited: GatewayProcess, control: FakeControl, prompt: str, *, stream: bool, delivered: int
) -> None:
    with sent(limited, prompt + "x" * 400, stream=stream) as client:
        client.getresponse().read()
    record = record_of(control)
    assert record["outcome"] == "error"
    assert (record["prompt_tokens"], record["completion_tokens"]) == (0, delivered)
    assert remaining(limited) > LIMIT - 100


@pytest.mark.parametrize("stream", [False, True])
def test_successful_request_is_charged_reported_usage(
    limited: GatewayProcess, control: FakeControl, *, stream: bool
) -> None:
    with sent(limited, "words 5 " + "x" * 1600, stream=stream) as client:
        client.getresponse().read()
    record = record_of(control)
    assert (record["prompt_tokens"], record["completion_tokens"]) == (7, 5)
    assert remaining(limited) > LIMIT - 100


def test_half_a_surrogate_pair_is_refused_with_where_it_is(
    gateway: GatewayProcess, engine: FakeEngine
) -> None:
    status, _, answer = post(
        gateway, b'{"model":"parser","messages":[{"role":"user","content":"ab\\ud800c"}]}'
    )
    assert status == 400
    error = answer["error"]
    assert (error["code"], error["param"]) == ("invalid_unicode", "messages[0].content")
    assert error["message"].startswith(
        "'messages[0].content' has the lone surrogate \\ud800 at character 2"
    )
    assert not engine.bodies
    # A whole pair is a character.
    status, _, _ = post(
        gateway, b'{"model":"parser","messages":[{"role":"user","content":"\\ud83d\\ude00"}]}'
    )
    assert status == 200


@for_each_case(
    "body",
    [
        b'{"model":"\\udc00","messages":[{"role":"user","content":"x"}]}',
        b'{"model":"parser","messages":[{"role":"user","content":[{"type":"text","text":"\\uD800\\uD800"}]}]}',
        b'{"model":"parser","messages":[{"role":"user","content":"x"}],"\\ud800":1}',
        b'{"model":"parser","messages":[{"role":"user","content":"x"}],"stop":["\\udfff"]}',
    ],
)
def test_half_a_surrogate_pair_is_refused_wherever_it_is(
    gateway: GatewayProcess, body: bytes
) -> None:
    status, _, answer = post(gateway, body)
    assert (status, answer["error"]["code"]) == (400, "invalid_unicode")
