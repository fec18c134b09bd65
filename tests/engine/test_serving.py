"""Serving by the real engine, over HTTP."""

from __future__ import annotations

import http.client
import json
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import openai
import pytest

from controlplane.ports.engines import EngineTask
from ninefold_runtime.exit_codes import ExitCode
from tests.engine.conftest import LIMIT_SECONDS, Start, complete_spec
from tests.engine.servers import KEY, MODEL, Server, running_server
from tests.integration.gateway.conftest import SECRET, backend_of
from tests.integration.gateway.control_planes import FakeControl, key_of, route_of
from tests.integration.gateway.processes import GatewayProcess

PROMPT = "青海省西宁市城北区朝阳街道人民路12号"
CHAT: dict[str, Any] = {
    "model": MODEL,
    "messages": [{"role": "user", "content": PROMPT}],
    "max_tokens": 8,
}


@pytest.fixture(scope="module")
def server(
    engine_python: Path, built_models: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    with running_server(
        engine_python,
        built_models / "ninefold-tiny-qwen2",
        folder=tmp_path_factory.mktemp("serving"),
    ) as server:
        yield server


def chat(server: Server, **changes: Any) -> tuple[int, Any]:
    return server.post("/v1/chat/completions", **(CHAT | changes))


def text(server: Server, **changes: Any) -> str:
    status, body = chat(server, **changes)
    assert status == 200, body
    return str(body["choices"][0]["message"]["content"])


def test_a_streamed_answer_is_the_whole_one_to_the_official_client(server: Server) -> None:
    drawn = {"temperature": 1.0, "seed": 1, "max_tokens": 20}
    status, body = chat(server, **drawn)
    assert status == 200
    # Every character of the prompt is a token; beside them two roles and an end are marked.
    assert body["usage"]["prompt_tokens"] == len(PROMPT) + 3
    assert body["usage"]["completion_tokens"] == 20
    assert body["choices"][0]["finish_reason"] == "length"

    with server.client() as client:
        stream = client.chat.completions.create(
            model=MODEL,
            messages=[{"role": "user", "content": PROMPT}],
            max_tokens=20,
            temperature=1.0,
            seed=1,
            stream=True,
            stream_options={"include_usage": True},
        )
        chunks = list(stream)
    streamed = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert streamed == body["choices"][0]["message"]["content"]
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == 20


def test_sampling_and_stop_strings_do_what_they_say(server: Server) -> None:
    drawn = [text(server, temperature=1.0, seed=seed, max_tokens=20) for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    stop = drawn[0][len(drawn[0]) // 2]
    stopped = text(server, temperature=1.0, seed=1, max_tokens=20, stop=[stop])
    assert stopped == drawn[0][: drawn[0].index(stop)]
    likeliest = [text(server, temperature=0), text(server, temperature=0, seed=9)]
    assert likeliest[0] == likeliest[1]


def test_a_streamed_completion_ends_with_done(server: Server) -> None:
    status, raw = server.send(
        "/v1/completions", {"model": "parser", "prompt": PROMPT, "stream": True}
    )
    assert status == 200
    assert raw.endswith(b"data: [DONE]\n\n")


def test_what_cannot_be_done_is_refused_in_openais_words(server: Server) -> None:
    status, body = chat(server, messages=[{"role": "user", "content": "省" * 600}])
    assert (status, body["error"]["code"]) == (400, "context_length_exceeded")
    status, body = chat(server, logit_bias={"5": 1})
    assert (status, body["error"]["param"]) == (400, "logit_bias")
    status, body = chat(server, model="other")
    assert (status, body["error"]["code"]) == (404, "model_not_found")
    assert server.send("/v1/models", key="wrong")[0] == 401
    assert server.send("/v1/models", key=None)[0] == 401
    # After all this it still answers.
    assert chat(server)[0] == 200


def test_a_client_that_leaves_frees_the_engine_and_a_full_queue_refuses(server: Server) -> None:
    long = CHAT | {"max_tokens": 400, "temperature": 2, "stream": True}
    leavers = []
    for _ in range(2):
        leaver = http.client.HTTPConnection("127.0.0.1", server.port, timeout=LIMIT_SECONDS)
        leaver.request(
            "POST",
            "/v1/chat/completions",
            json.dumps(long),
            {"Authorization": f"Bearer {KEY}"},
        )
        leavers.append(leaver)
    waiting = "ninefold_engine_requests_waiting"
    generated = server.gauge("ninefold_engine_completion_tokens_total")
    running = "ninefold_engine_requests_running"
    _until(lambda: server.gauge(waiting) == 1)
    assert chat(server)[0] == 503
    for leaver in leavers:
        leaver.close()
    _until(lambda: server.gauge(waiting) == 0 and server.gauge(running) == 0)
    # The tokens of answers that nobody read to their end were never generated.
    assert server.gauge("ninefold_engine_completion_tokens_total") == generated
    assert chat(server)[0] == 200


def _until(condition: Any) -> None:
    deadline = time.monotonic() + LIMIT_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_nothing_is_served_without_a_key(start: Start, inputs: Path) -> None:
    run = start(
        EngineTask.SERVE, complete_spec(EngineTask.SERVE), inputs=inputs, arguments=("--port", "0")
    )
    assert run.finish() == ExitCode.BAD_INPUT
    assert "NINEFOLD_ENGINE_KEY is not set" in run.lines[-1]


def test_a_rolling_update_ends_a_stream_that_takes_longer_than_the_grace_period(
    server: Server, engine_python: Path, built_models: Path, tmp_path: Path
) -> None:
    """Its client gets an error, the usage counts it, and further requests go to the new replica."""

    def backend(of: Server) -> dict[str, Any]:
        found = backend_of(f"http://127.0.0.1:{of.port}", model=MODEL)
        for endpoint in found["endpoints"]:
            endpoint["credential"] = KEY
        return found

    with ExitStack() as stack:
        old = stack.enter_context(
            running_server(
                engine_python,
                built_models / "ninefold-tiny-qwen2",
                folder=tmp_path / "old",
                environment={"NINEFOLD_DRAIN_SECONDS": "1"},
            )
        )
        control = FakeControl().start()
        stack.callback(control.stop)
        control.publish(routes=[route_of("parser", backend(old))], keys=[key_of(SECRET)])
        gateway = GatewayProcess(home=tmp_path, control_url=control.url)
        stack.callback(gateway.stop)
        gateway.start()
        client = gateway.client(SECRET).with_options(timeout=LIMIT_SECONDS)
        # One after the other: millions of tokens.
        stream = client.completions.create(
            model="parser", prompt=[PROMPT] * 64, n=128, max_tokens=400, stream=True
        )
        next(iter(stream))
        version = control.publish(routes=[route_of("parser", backend(server))])
        installed = f"ninefold_gateway_snapshot_version {version}\n"
        _until(lambda: installed in gateway.get("/metrics")[1])
        old.run.process.send_signal(signal.SIGTERM)
        assert client.completions.create(model="parser", prompt=PROMPT).choices
        with pytest.raises(openai.APIError, match="The server is shutting down"):
            list(stream)
        assert old.run.finish() == ExitCode.FINISHED
        assert old.run.lines[-1] == "drained"
        _until(lambda: len(control.records) == 2)
        (failed,) = [record for record in control.records if record["outcome"] != "ok"]
        assert (failed["outcome"], failed["status"]) == ("error", 502)
        assert failed["completion_tokens"] >= 1


def test_sigterm_lets_an_open_answer_end(server: Server) -> None:
    """The last of this module: it ends the server."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=LIMIT_SECONDS)
    body = json.dumps(CHAT | {"max_tokens": 100, "temperature": 2, "seed": 5, "stream": True})
    connection.request("POST", "/v1/chat/completions", body, {"Authorization": f"Bearer {KEY}"})
    response = connection.getresponse()
    server.run.process.send_signal(signal.SIGTERM)
    assert response.read().endswith(b"data: [DONE]\n\n")
    connection.close()
    assert server.run.finish() == ExitCode.FINISHED
    assert server.run.lines[-1] == "drained"
