"""Serving by the real engine, over HTTP."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import openai
import pytest

from controlplane.ports.engines import EngineTask
from ninefold_runtime.exit_codes import ExitCode
from tests.engine.conftest import LIMIT_SECONDS, Run, Start, complete_spec

KEY = "engine-key"
PROMPT = "青海省西宁市城北区朝阳街道人民路12号"
CHAT: dict[str, Any] = {
    "model": "parser",
    "messages": [{"role": "user", "content": PROMPT}],
    "max_tokens": 8,
}


@dataclass
class Server:
    run: Run
    port: int

    def send(
        self, path: str, body: dict[str, Any] | None = None, *, key: str | None = KEY
    ) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        headers = {"Authorization": f"Bearer {key}"} if key is not None else {}
        try:
            content = None if body is None else json.dumps(body)
            connection.request("GET" if body is None else "POST", path, content, headers)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def chat(self, **changes: Any) -> tuple[int, Any]:
        status, body = self.send("/v1/chat/completions", CHAT | changes)
        return status, json.loads(body)

    def text(self, **changes: Any) -> str:
        status, body = self.chat(**changes)
        assert status == 200, body
        return str(body["choices"][0]["message"]["content"])

    def gauge(self, name: str) -> int:
        _, body = self.send("/metrics")
        lines = body.decode().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(f"{name} "))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def server(start: Start, inputs: Path) -> Iterator[Server]:
    port = _free_port()
    run = start(
        EngineTask.SERVE,
        complete_spec(EngineTask.SERVE, model_name="parser", queue_size=1),
        inputs=inputs,
        arguments=("--port", str(port)),
        environment={"NINEFOLD_ENGINE_KEY": KEY},
    )
    run.wait_for("listening on")
    server = Server(run=run, port=port)
    deadline = time.monotonic() + LIMIT_SECONDS
    while True:
        try:
            if server.send("/health", key=None)[0] == 200:
                break
        except ConnectionRefusedError:
            assert time.monotonic() < deadline, run.text()
            time.sleep(0.05)
    yield server
    run.close()


def test_a_streamed_answer_is_the_whole_one_to_the_official_client(server: Server) -> None:
    drawn = {"temperature": 1.0, "seed": 1, "max_tokens": 20}
    status, body = server.chat(**drawn)
    assert status == 200
    # Every character of the prompt is a token; beside them two roles and an end are marked.
    assert body["usage"]["prompt_tokens"] == len(PROMPT) + 3
    assert body["usage"]["completion_tokens"] == 20
    assert body["choices"][0]["finish_reason"] == "length"

    client = openai.OpenAI(base_url=f"http://127.0.0.1:{server.port}/v1", api_key=KEY)
    with client:
        stream = client.chat.completions.create(
            model="parser",
            messages=[{"role": "user", "content": PROMPT}],
            max_tokens=20,
            temperature=1.0,
            seed=1,
            stream=True,
            stream_options={"include_usage": True},
        )
        chunks = list(stream)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == body["choices"][0]["message"]["content"]
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == 20


def test_sampling_and_stop_strings_do_what_they_say(server: Server) -> None:
    drawn = [server.text(temperature=1.0, seed=seed, max_tokens=20) for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    stop = drawn[0][len(drawn[0]) // 2]
    stopped = server.text(temperature=1.0, seed=1, max_tokens=20, stop=[stop])
    assert stopped == drawn[0][: drawn[0].index(stop)]
    likeliest = [server.text(temperature=0), server.text(temperature=0, seed=9)]
    assert likeliest[0] == likeliest[1]


def test_a_streamed_completion_ends_with_done(server: Server) -> None:
    status, raw = server.send(
        "/v1/completions", {"model": "parser", "prompt": PROMPT, "stream": True}
    )
    assert status == 200
    assert raw.endswith(b"data: [DONE]\n\n")


def test_what_cannot_be_done_is_refused_in_openais_words(server: Server) -> None:
    status, body = server.chat(messages=[{"role": "user", "content": "省" * 600}])
    assert (status, body["error"]["code"]) == (400, "context_length_exceeded")
    status, body = server.chat(n=2)
    assert (status, body["error"]["param"]) == (400, "n")
    status, body = server.chat(model="other")
    assert (status, body["error"]["code"]) == (404, "model_not_found")
    assert server.send("/v1/models", key="wrong")[0] == 401
    assert server.send("/v1/models", key=None)[0] == 401
    # After all this it still answers.
    assert server.chat()[0] == 200


def test_a_client_that_leaves_frees_the_engine_and_a_full_queue_refuses(server: Server) -> None:
    long = CHAT | {"max_tokens": 400, "temperature": 2, "stream": True}
    leavers = []
    for _ in range(2):
        leaver = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        leaver.request(
            "POST",
            "/v1/chat/completions",
            json.dumps(long),
            {"Authorization": f"Bearer {KEY}"},
        )
        leavers.append(leaver)
    waiting = "ninefold_engine_requests_waiting"
    running = "ninefold_engine_requests_running"
    _until(lambda: server.gauge(waiting) == 1)
    assert server.chat()[0] == 503
    for leaver in leavers:
        leaver.close()
    _until(lambda: server.gauge(waiting) == 0 and server.gauge(running) == 0)
    # The tokens of answers that nobody read to their end were never generated.
    assert server.gauge("ninefold_engine_completion_tokens_total") == 0
    assert server.chat()[0] == 200


def _until(condition: Any) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_sigterm_lets_an_open_answer_end(server: Server) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    body = json.dumps(CHAT | {"max_tokens": 100, "temperature": 2, "seed": 5, "stream": True})
    connection.request("POST", "/v1/chat/completions", body, {"Authorization": f"Bearer {KEY}"})
    response = connection.getresponse()
    server.run.process.send_signal(signal.SIGTERM)
    assert response.read().endswith(b"data: [DONE]\n\n")
    connection.close()
    assert server.run.finish() == ExitCode.FINISHED
    assert server.run.lines[-1] == "drained"


def test_nothing_is_served_without_a_key(start: Start, inputs: Path) -> None:
    run = start(
        EngineTask.SERVE, complete_spec(EngineTask.SERVE), inputs=inputs, arguments=("--port", "0")
    )
    assert run.finish() == ExitCode.BAD_INPUT
    assert "NINEFOLD_ENGINE_KEY is not set" in run.lines[-1]
